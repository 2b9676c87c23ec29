// Sums of counts and masses over the lanes of one workgroup.
//
// Numerics  Integer sums, exact in any order.

struct Sum {
    count: u32,
    mass: Wide,
}

var<workgroup> scan_count: array<u32, LANES>;
var<workgroup> scan_low: array<u32, LANES>;
var<workgroup> scan_high: array<u32, LANES>;

// The sum over all lanes before this one. Every lane of the workgroup must call it.
fn sum_before(lane: u32, count: u32, mass: Wide) -> Sum {
    scan_count[lane] = count;
    scan_low[lane] = mass.x;
    scan_high[lane] = mass.y;
    workgroupBarrier();
    for (var step = 1u; step < LANES; step <<= 1u) {
        var earlier = Sum(0u, Wide(0u, 0u));
        if lane >= step {
            earlier = Sum(scan_count[lane - step], Wide(scan_low[lane - step], scan_high[lane - step]));
        }
        workgroupBarrier();
        scan_count[lane] += earlier.count;
        let both = wide_add(Wide(scan_low[lane], scan_high[lane]), earlier.mass);
        scan_low[lane] = both.x;
        scan_high[lane] = both.y;
        workgroupBarrier();
    }
    return Sum(scan_count[lane] - count, wide_sub(Wide(scan_low[lane], scan_high[lane]), mass));
}
