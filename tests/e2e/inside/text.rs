//! The module that programs of these tests load, whichever API they use.

/// Kernels with a choice and a loop; `k3000` can't be rewritten.
pub const TEXT: &str = "\
//
.version 8.0
.target sm_90
.address_size 64

.visible .entry k1000(
	.param .u64 k1000_param_0
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<4>;

	mov.u32 	%r1, %tid.x;
	setp.gt.u32 	%p1, %r1, 3;
	@%p1 bra 	$L__BB0_2;

	add.u32 	%r2, %r1, 1;

$L__BB0_2:
	ret;

}

.visible .entry k2000()
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<4>;

	mov.u32 	%r1, 0;

$L__BB1_1:
	add.u32 	%r1, %r1, 1;
	setp.lt.u32 	%p1, %r1, 100;
	@%p1 bra 	$L__BB1_1;

	ret;

}

.visible .entry k3000()
{
	setmaxnreg.inc.sync.aligned.u32 	240;
	ret;

}
";
