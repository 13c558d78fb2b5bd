"""The page and the HTTP service: uploads in, restored maps out, within limits that are kept while bytes arrive.

The server's own process only moves bytes. Files from outside are decoded, and results encoded, in a process of their
own (the desk); maps are restored in another (the bench). Either can be killed when its time is over.
"""
