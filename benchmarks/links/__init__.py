"""Links that are slow, narrow or break: a proxy between parties, for measurements and tests.

faults     what a proxy does to the connections that pass it
pieces     a stream of bytes in the pieces that are counted and delayed
proxy      the proxy, in a thread or as a command
job        a training job whose server and members are connected through it
"""
