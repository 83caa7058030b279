# A program without threads has its thread-local variables among the others. LLVM 19's linker gives their addresses as
# they are, and adds the begin of their section too unless someone else says that it is 0.
	.globaltype	__tls_base, i32
	.globl	__tls_base
__tls_base:
