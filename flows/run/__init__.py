"""What a flow run does beside the chain: batches as task runs, artifacts, events, the request limit, training as a
process.
"""
