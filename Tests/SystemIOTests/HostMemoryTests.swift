import Glibc
import SystemIO
import Testing

@Suite struct HostMemoryTests {
  /// glibc notes in the word before a block whether it is a mapping of its own, which goes back to the
  /// system when it is freed.
  @Test func aLargeBlockIsAMappingOfItsOwnWhateverWasFreedBefore() throws {
    Host.returnLargeBlocks()
    let first = try #require(malloc(24 << 20))
    free(first)
    let second = try #require(malloc(2 << 20))
    defer { free(second) }
    let head = second.load(fromByteOffset: -MemoryLayout<UInt>.size, as: UInt.self)
    #expect(head & 2 != 0)
  }
}
