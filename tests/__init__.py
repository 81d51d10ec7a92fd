"""The tests, a folder for each package of wireformat; the modules here are shared by them.

codec_checks    one check for everything that is encoded        strategies     generated events of gaussdb-binary
handmade        messages put together byte by byte              mutations      valid bytes made bad
engines         both engines at once; rows to compare           accounting     where every input byte went
golden_cases    the reference captures and what they say         support        what differs between formats
"""
