"""What a flow run adds to the chain: batches as task runs, artifacts, events, the request limit, training as a
process.
"""
