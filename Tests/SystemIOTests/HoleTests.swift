import CLinux
import Testing

/// Which file systems are believed about holes.
@Suite struct HoleTests {
  @Test func holesOfZFSAreNotBelieved() {
    let (zfs, ext4, btrfs): (UInt, UInt, UInt) = (0x2fc1_2fc1, 0xef53, 0x9123_683e)
    #expect(cl_tells_holes_of(zfs) == 0)
    #expect(cl_tells_holes_of(ext4) == 1 && cl_tells_holes_of(btrfs) == 1)
  }
}
