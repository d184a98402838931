import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Packs whose tables claim more memory than the pack contains data.
struct HostilePackTests {
  private let storage = MemoryStorage()

  /// Stores bytes as a pack, reads its tables and returns the error.
  private func fault(_ bytes: [UInt8]) throws -> StoreError? {
    let object = try RepositoryStorage(storage).encode(bytes)
    let path = RepositoryLayout.tested.pack(object.id)
    try storage.makeDirectories(["packs"], in: .root)
    try storage.makeDirectories([path.directory.name], in: path.directory.directory)
    try storage.save(object.bytes, as: path, by: path.directory)
    return storeError { try PackTables.load(object.id, size: object.size, from: storage) }
  }

  /// Returns the GNU tar header of a sparse file that consists of one hole.
  private static func hole(of size: Int) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: 512)
    func put(_ text: String, at location: Int) {
      header.replaceSubrange(location..<(location + text.utf8.count), with: text.utf8)
    }
    func octal(_ number: Int) -> String {
      let digits = String(number, radix: 8)
      return String(repeating: "0", count: 11 - digits.count) + digits
    }
    put("hole", at: 0)
    put("0000644", at: 100)
    put(octal(0), at: 124)
    put(octal(0), at: 136)
    put("        ", at: 148)
    put("S", at: 156)
    put("ustar  ", at: 257)
    put(octal(size), at: 386)
    put(octal(0), at: 398)
    put(octal(size), at: 483)
    let sum = String(header.reduce(0) { $0 + Int($1) }, radix: 8)
    put(String(repeating: "0", count: 6 - sum.count) + sum + "\0 ", at: 148)
    return header
  }

  /// A gigabyte of holes in ten kilobytes of headers must not be expanded.
  @Test func holesAreNotReadIntoMemory() throws {
    let plain = Array((0..<20).map { _ in Self.hole(of: 16 << 20) }.joined())
    var compressor = try ZstdCompressor()
    let frame = try compressor.compress(plain)
    let table = SeekTable(frames: [
      .init(storedSize: UInt32(frame.count), contentSize: UInt32(plain.count))
    ])
    let error = try fault(frame + table.encoded())
    #expect(error?.kind == .damaged)
    #expect(
      error?.reason.contains("a member claims 16777216 bytes") == true,
      "\(error?.reason ?? "nothing")")
  }

  @Test func oversizedFrameIsNotRead() throws {
    let stored = [UInt8](repeating: 0, count: FormatLimit.storedFrame + 1)
    let table = SeekTable(frames: [.init(storedSize: UInt32(stored.count), contentSize: 1000)])
    let error = try fault(stored + table.encoded())
    #expect(
      error?.reason.contains("a frame of invalid size") == true, "\(error?.reason ?? "nothing")")
    let index = IndexBuilder(packs: [
      .init(
        id: Blake2b.hash([1]), size: 1 << 30,
        frames: [FrameLocation(offset: 0, stored: UInt32(stored.count), plain: 1000)])
    ]).encode()
    let refusal = storeError { try IndexObject(bytes: index) }
    #expect(refusal?.kind == .damaged)
  }

  @Test func emptyFrameIsRefused() throws {
    let table = SeekTable(frames: [.init(storedSize: 4, contentSize: 0)])
    let error = try fault([1, 2, 3, 4] + table.encoded())
    #expect(
      error?.reason.contains("a frame of invalid size") == true, "\(error?.reason ?? "nothing")")
  }
}
