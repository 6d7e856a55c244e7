"""The client side of Reverie's HTTP contract: connections, and the error that each problem document means."""
