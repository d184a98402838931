import CLinux
import Testing

/// The file systems that report holes reliably.
struct HoleTests {
  @Test func holesReportedByZFSAreNotTrusted() {
    let (zfs, ext4, btrfs): (UInt, UInt, UInt) = (0x2fc1_2fc1, 0xef53, 0x9123_683e)
    #expect(cl_reports_holes_of(zfs) == 0)
    #expect(cl_reports_holes_of(ext4) == 1 && cl_reports_holes_of(btrfs) == 1)
  }
}
