"""A model that runs elsewhere, behind the OpenAI completions interface: asked, never assumed.

    from lmcore.engines.config import configured
    from lmcore.engines.engine import Engine

    for config in configured():                          # the file that GLASS_BOX_LM_ENGINES names
        engine = Engine(config)
        print(engine.capabilities)
        print(engine.next("The weather today is", 20).best)

`client` brings in an HTTP library; without an engine nothing imports it.
"""
