"""Pure figure builders: arrays and labels in, figures for Plotly out; streamlit is never imported here."""
