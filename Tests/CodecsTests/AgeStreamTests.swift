import TestSupport
import Testing

@testable import Codecs

/// Payloads: portions, ranges, pieces processed by several threads, and damage.
struct AgeStreamTests {
  private typealias Seeded = TestSupport.Seeded

  /// Sizes at the boundaries of pieces.
  private static let sizes = [
    0, 1, 15, 16, 17, 65_519, 65_520, 65_535, 65_536, 65_537, 65_552, 131_071, 131_072, 131_073,
    196_608, 200_000,
  ]

  @Test(arguments: sizes) func anySplitResultsInTheSameFile(size: Int) throws {
    var random = Seeded.fresh()
    let identity = AgeIdentity()
    let plain = random.bytes(size)
    let file = try AgeFile(for: [identity.recipient])
    let whole = file.encrypt(plain.span)
    #expect(whole.count == file.storedCount(ofPlain: size))
    for portion in [
      65_535, 65_536, 65_537, 131_072, 150_000, Int.random(in: 1...70_000, using: &random),
    ] {
      var stored: [UInt8] = []
      var encryptor = AgeEncryptor(file)
      for run in runs(of: size, portion) {
        encryptor.encrypt(plain.span.extracting(run), appendingTo: &stored)
      }
      encryptor.finish(appendingTo: &stored)
      #expect(stored == whole, "portions of \(portion)")
      #expect(try decrypt(whole, portion, with: identity) == plain, "portions of \(portion)")
    }
    #expect(try AgeFixture.decrypt(whole, with: [identity]) == plain)
  }

  /// For portions of any size, the buffer is not reallocated.
  @Test func portionsDoNotReallocateTheBuffer() throws {
    let file = try AgeFile(for: [AgeIdentity().recipient])
    var encryptor = AgeEncryptor(file)
    var buffer: [UInt8] = []
    buffer.reserveCapacity(300_000)
    let address = buffer.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
    let portion = [UInt8](repeating: 1, count: 200_000)
    for _ in 0..<20 {
      encryptor.encrypt(portion.span, appendingTo: &buffer)
      #expect(buffer.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } == address)
      buffer.removeAll(keepingCapacity: true)
    }
  }

  @Test func rangesAreSlices() throws {
    var random = Seeded.fresh()
    let identity = AgeIdentity()
    for size in Self.sizes {
      let plain = random.bytes(size)
      let stored = try AgeFile(for: [identity.recipient]).encrypt(plain.span)
      let file = try AgeFile(opening: stored.span, with: [identity])
      #expect(try file.plainCount(ofStored: UInt64(stored.count)) == UInt64(size))
      let edges = [0, size, 65_535, 65_536, 65_537, 131_072].filter { $0 <= size }
      var ranges = edges.flatMap { low in edges.filter { $0 >= low }.map { low..<$0 } }
      for _ in 0..<10 {
        let low = Int.random(in: 0...size, using: &random)
        ranges.append(low..<Int.random(in: low...size, using: &random))
      }
      for range in ranges {
        var buffer: [UInt8] = [1, 2, 3]
        let wanted = UInt64(range.lowerBound)..<UInt64(range.upperBound)
        let storedRange = try file.storedRange(of: wanted, size: UInt64(stored.count))
        #expect(storedRange.count <= range.count + 2 * AgePayload.storedCount)
        let read = stored.span.extracting(Int(storedRange.lowerBound)..<Int(storedRange.upperBound))
        try file.open(wanted, stored: read, size: UInt64(stored.count), appendingTo: &buffer)
        #expect(buffer == [1, 2, 3] + plain[range], "\(range) of \(size)")
      }
    }
  }

  @Test func rangesBeyondTheEndOrOfOtherBytesAreRefused() throws {
    let plain = [UInt8](repeating: 7, count: 100_000)
    let identity = AgeIdentity()
    let file = try AgeFile(for: [identity.recipient])
    let stored = file.encrypt(plain.span)
    let size = UInt64(stored.count)
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try file.storedRange(of: 99_999..<100_001, size: size)
      }?.reason == "byte 100001 is beyond its 100000 plain bytes")
    let storedRange = try file.storedRange(of: 10..<70_000, size: size)
    #expect(storedRange == UInt64(file.head.count)..<size)
    var buffer: [UInt8] = [9]
    var pieces = Array(stored[Int(storedRange.lowerBound)...])
    // A missing byte; a damaged second piece; the first piece in place of the second.
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try file.open(
          10..<70_000, stored: pieces.span.extracting(droppingLast: 1), size: size,
          appendingTo: &buffer)
      }?.kind == .payload)
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try file.open(
          65_536..<65_540, stored: pieces.span.extracting(first: pieces.count - 65_552), size: size,
          appendingTo: &buffer)
      }?.kind == .payload)
    pieces[70_000] ^= 1
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try file.open(10..<70_000, stored: pieces.span, size: size, appendingTo: &buffer)
      }?.reason == "piece 1 is damaged, truncated or moved")
    #expect(buffer == [9])
  }

  /// A file that was truncated between two pieces seems valid until its end is read.
  @Test func aFileCutBetweenPiecesIsFoundAtItsEnd() throws {
    let identity = AgeIdentity()
    let file = try AgeFile(for: [identity.recipient])
    let stored = file.encrypt([UInt8](repeating: 7, count: 200_000).span)
    let cut = Array(stored[..<(file.head.count + 2 * AgePayload.storedCount)])
    let size = UInt64(cut.count)
    #expect(try file.plainCount(ofStored: size) == 131_072)
    var buffer: [UInt8] = []
    let storedRange = try file.storedRange(of: 131_071..<131_072, size: size)
    let last = cut.span.extracting(Int(storedRange.lowerBound)..<Int(storedRange.upperBound))
    #expect(
      AgeFixture.refusal { () throws(AgeError) in
        try file.open(131_071..<131_072, stored: last, size: size, appendingTo: &buffer)
      }?.kind == .payload)
    for size in [
      0, UInt64(file.head.count) + 15, UInt64(file.head.count + AgePayload.storedCount) + 16,
    ] {
      #expect(
        AgeFixture.refusal { () throws(AgeError) in
          try file.plainCount(ofStored: size)
        }?.kind == .payload)
    }
  }

  // MARK: - Threads

  /// Several threads encrypt pieces of one file at once.
  @Test func piecesSealedByThreadsAreTheSameFile() async throws {
    let plain = [UInt8](repeating: 5, count: 10 * AgePayload.plainCount + 77)
    let file = try AgeFile(for: [AgeIdentity().recipient])
    let whole = file.encrypt(plain.span)
    let parts = await withTaskGroup(of: (Int, [UInt8]).self) { group in
      for first in stride(from: 0, through: 10, by: 2) {
        group.addTask {
          let start = first * AgePayload.plainCount
          let end = min(plain.count, start + 2 * AgePayload.plainCount)
          var part: [UInt8] = []
          file.payload.seal(
            plain.span.extracting(start..<end), from: UInt64(first),
            endsPayload: end == plain.count,
            appendingTo: &part)
          return (first, part)
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let sorted = parts.sorted { $0.0 < $1.0 }.flatMap { $0.1 }
    #expect(file.head + sorted == whole)
  }

  // MARK: - Damage

  @Test(arguments: [65_536, 65_537, 131_072, 140_000])
  func truncatedAndExtendedPayloadsAreRefused(size: Int) throws {
    var random = Seeded.fresh()
    let identity = AgeIdentity()
    let plain = random.bytes(size)
    let file = try AgeFile(for: [identity.recipient])
    let stored = file.encrypt(plain.span)
    var ends = [stored.count - 1]
    for start in stride(from: file.head.count, to: stored.count, by: AgePayload.storedCount) {
      ends += [-1, 0, 1, 15, 16, 17].map { start + $0 }
    }
    for _ in 0..<32 { ends.append(.random(in: file.head.count..<stored.count, using: &random)) }
    ends.removeAll { $0 < file.head.count || $0 >= stored.count }
    for end in ends {
      try check(Array(stored[..<end]), identity, plain, "\(end) of \(stored.count)")
    }
    for more in [1, 16, 17, 65_552] {
      try check(stored + random.bytes(more), identity, plain, "\(more) bytes more")
    }
    try check(stored + stored[file.head.count...], identity, plain, "repeated payload")
  }

  @Test func flippedBitsOfEachPieceAreFound() throws {
    var random = Seeded.fresh()
    let identity = AgeIdentity()
    let plain = random.bytes(150_000)
    let file = try AgeFile(for: [identity.recipient])
    let stored = file.encrypt(plain.span)
    for _ in 0..<Sampling.count(60, of: 2000) {
      var other = stored
      other[Int.random(in: (file.head.count - 16)..<stored.count, using: &random)] ^=
        1 << UInt8.random(in: 0..<8, using: &random)
      try check(other, identity, plain, "a flipped bit")
    }
    // Two swapped pieces.
    var swapped = stored
    let first = file.head.count..<(file.head.count + AgePayload.storedCount)
    swapped.replaceSubrange(first, with: stored[first.upperBound..<(first.upperBound + 65_552)])
    try check(swapped, identity, plain, "a moved piece")
  }

  /// Expects a payload failure, after only correct bytes were released.
  private func check(
    _ stored: [UInt8], _ identity: AgeIdentity, _ plain: [UInt8], _ subject: String
  ) throws {
    let file = try AgeFile(opening: stored.span, with: [identity])
    var released: [UInt8] = []
    let error = AgeFixture.refusal { () throws(AgeError) in
      var decryptor = AgeDecryptor(file)
      try decryptor.decrypt(
        stored.span.extracting(file.head.count..<stored.count), appendingTo: &released)
      try decryptor.finish(appendingTo: &released)
    }
    #expect(error?.kind == .payload, "\(subject)")
    #expect(plain.starts(with: released), "\(subject): wrong bytes were released")
  }

  // MARK: - Helpers

  private func decrypt(
    _ stored: [UInt8], _ portion: Int, with identity: AgeIdentity
  ) throws -> [UInt8] {
    let file = try AgeFile(opening: stored.span, with: [identity])
    var plain: [UInt8] = []
    var decryptor = AgeDecryptor(file)
    for run in runs(of: stored.count - file.head.count, portion) {
      let start = file.head.count + run.lowerBound
      try decryptor.decrypt(
        stored.span.extracting(start..<(start + run.count)), appendingTo: &plain)
    }
    try decryptor.finish(appendingTo: &plain)
    return plain
  }

  private func runs(of size: Int, _ portion: Int) -> [Range<Int>] {
    stride(from: 0, to: size, by: portion).map { $0..<min(size, $0 + portion) }
  }
}
