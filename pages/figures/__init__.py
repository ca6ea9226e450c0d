"""Pure figure builders: arrays and labels in, plotly figures out; streamlit is never imported here."""
