import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The choice of a frame's compression method; each method can be decompressed.
struct FrameEncoderTests {
  /// Rows of a table with repeating words and distinct values.
  private static let rows: [UInt8] = {
    var random = SeededBytes(seed: 61)
    var bytes: [UInt8] = []
    while bytes.count < 3 << 20 {
      bytes += Array("INSERT INTO photos (owner, taken, thumbnail) VALUES ".utf8)
      bytes += random.bytes(80)
    }
    return bytes
  }()

  private static let text: [UInt8] = {
    var random = SeededBytes(seed: 62)
    var bytes: [UInt8] = []
    while bytes.count < 3 << 20 { bytes += Array("word\(random.bytes(1)[0]) ".utf8) }
    return bytes
  }()

  private func encode(_ bytes: [UInt8], isOneFile: Bool = true) throws -> [UInt8] {
    var encoder = try FrameEncoder()
    let frame = try encoder.encode(PackFrame.Plain(bytes: bytes, blobs: [], isOneFile: isOneFile))
    var decompressor = try ZstdDecompressor()
    #expect(frame.plain == bytes.count)
    #expect(try decompressor.decompress(frame.stored, limit: bytes.count) == bytes)
    return frame.stored
  }

  private func frame(_ bytes: [UInt8], by method: ZstdMethod) throws -> [UInt8] {
    var compressor = try ZstdCompressor(method)
    return try compressor.compress(bytes)
  }

  @Test func largeTableIsStoredByItsRepeats() throws {
    let stored = try encode(Self.rows)
    #expect(try stored == frame(Self.rows, by: FrameEncoder.repeats))
    #expect(stored.count < Self.rows.count * 3 / 4)
  }

  @Test func manyFilesAndSmallFramesAreNotProbed() throws {
    #expect(try encode(Self.rows, isOneFile: false) == frame(Self.rows, by: FrameEncoder.usual))
    let small = Array(Self.rows.prefix(FrameEncoder.largeFrame - 1))
    #expect(try encode(small) == frame(small, by: FrameEncoder.usual))
  }

  @Test func textIsCompressedAndNoiseIsNot() throws {
    #expect(try encode(Self.text) == frame(Self.text, by: FrameEncoder.usual))
    var random = SeededBytes(seed: 63)
    let noise = random.bytes(3 << 20)
    #expect(try encode(noise) == frame(noise, by: FrameEncoder.cheapest))
  }

  /// A frame encoded after others equals the same frame encoded alone.
  @Test func previousFrameHasNoEffect() throws {
    var encoder = try FrameEncoder()
    for bytes in [Self.rows, Self.text, Self.rows, Array(Self.text.prefix(5000))] {
      let frame = try encoder.encode(PackFrame.Plain(bytes: bytes, blobs: [], isOneFile: true))
      #expect(try frame.stored == encode(bytes))
    }
  }
}
