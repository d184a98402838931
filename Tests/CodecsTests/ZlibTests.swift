import TestSupport
import Testing

@testable import Codecs

struct ZlibTests {
  private func deflated(_ bytes: [UInt8], level: Int = 6, portion: Int = .max) throws -> [UInt8] {
    var deflater = try Deflater(level: level)
    var stored: [UInt8] = []
    var position = 0
    while position < bytes.count {
      let end = min(bytes.count, position + min(portion, bytes.count))
      try deflater.deflate(bytes.span.extracting(position..<end), appendingTo: &stored)
      position = end
    }
    try deflater.finish(appendingTo: &stored)
    return stored
  }

  /// Decompresses into a buffer of this size from portions of this size. Returns nil if the stream
  /// is incomplete.
  private func inflated(_ stored: [UInt8], room: Int, portion: Int) throws -> [UInt8]? {
    var inflater = try Inflater()
    var (plain, position) = ([UInt8](), 0)
    var buffer = [UInt8](repeating: 0, count: room)
    while !inflater.isFinished {
      let end = min(stored.count, position + portion)
      let span = stored.span.extracting(position..<end)
      let (consumed, produced) = try buffer.withUnsafeMutableBytes {
        try inflater.inflate(span, into: $0)
      }
      if consumed == 0 && produced == 0 && end == stored.count { return nil }
      position += consumed
      plain += buffer.prefix(produced)
    }
    return plain
  }

  private let samples: [[UInt8]] = [
    [], [1], Array("text".utf8), [UInt8](repeating: 7, count: 300_000),
    (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) },
  ]

  @Test(arguments: [1, 17, 65_536], [1, 1000, 1 << 20])
  func inflatesInPortionsOfAnySize(room: Int, portion: Int) throws {
    for sample in samples where sample.count < 1000 || room > 1000 && portion > 1 {
      let stored = try deflated(sample, portion: max(1, portion / 2))
      #expect(try inflated(stored, room: room, portion: portion) == sample)
    }
  }

  @Test(.enabled(if: Program.exists("python3"))) func agreesWithPython() throws {
    let script = "import sys, zlib; sys.stdout.buffer.write(zlib.%(sys.stdin.buffer.read()))"
    func python(_ function: String, _ input: [UInt8]) throws -> [UInt8] {
      let words = ["-c", script.replacing("%", with: function)]
      return try Program.run("python3", words, input: input).standardOutput
    }
    for sample in samples {
      #expect(try python("decompress", try deflated(sample, level: 9)) == sample)
      #expect(try inflated(try python("compress", sample), room: 999, portion: 333) == sample)
    }
  }

  @Test func aTruncatedStreamHasNoEnd() throws {
    let stored = try deflated(samples[2])
    for count in 0..<stored.count {
      #expect(try inflated(Array(stored[..<count]), room: 100, portion: 10) == nil)
    }
  }

  @Test func findsDamageAndInvalidStreams() throws {
    let stored = try deflated(samples[4])
    for position in [0, 1, stored.count - 1] {
      var changed = stored
      changed[position] ^= 0x40
      let error = #expect(throws: CodecError.self) {
        _ = try inflated(changed, room: 4096, portion: 4096)
      }
      #expect(error?.kind == .malformed)
    }
    #expect(throws: CodecError.self) {
      _ = try inflated(Array("not a stream".utf8), room: 10, portion: 10)
    }
  }

  @Test func refusesADictionary() {
    // A header with the FDICT flag and the checksum of the dictionary.
    let error = #expect(throws: CodecError.self) {
      _ = try inflated([0x78, 0xbb, 0, 0, 0, 1, 0, 0], room: 10, portion: 10)
    }
    #expect(error?.kind == .unsupported)
  }

  @Test func stopsAtTheEndOfTheStream() throws {
    let stored = try deflated(samples[2])
    var inflater = try Inflater()
    var room = [UInt8](repeating: 0, count: 100)
    let more = stored + [1, 2, 3]
    let span = more.span
    let (consumed, produced) = try room.withUnsafeMutableBytes {
      try inflater.inflate(span, into: $0)
    }
    #expect(consumed == stored.count && produced == 4 && inflater.isFinished)
  }

  @Test func refusesInvalidLevels() {
    for level in [-1, 0, 10] {
      #expect(throws: CodecError.self) { _ = try Deflater(level: level) }
    }
  }
}
