"""Values of pgoutput in binary form to text, in compiled code, as wireformat/pgtypes/binary.py does one by one."""
