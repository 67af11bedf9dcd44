"""Training together: one round loop; a strategy says what is shared, an alignment how rows find each other, an
aggregation how they are added.

The server (`server`) is free of torch and of graphs: it adds vectors and decides when to stop. A client (`client`)
hosts a local trainer and decides from its own configuration what it sends.
"""
