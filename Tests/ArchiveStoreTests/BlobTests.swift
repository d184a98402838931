import Codecs
import SystemIO
import Testing

@testable import ArchiveStore

struct ContentCutterTests {
  /// Returns the lengths of the pieces of a file written in portions, and checks that no byte is
  /// lost.
  private func cut(
    _ bytes: [UInt8], portion: Int = 1 << 20, isDatabase: Bool = false, size: UInt64? = nil
  ) throws -> [Int] {
    var cutter = ContentCutter(isDatabase: isDatabase, size: size)
    var lengths: [Int] = []
    var joined: [UInt8] = []
    func take(isLast: Bool) {
      while let cut = cutter.next(isLast: isLast) {
        #expect(cut.offset == joined.count)
        lengths.append(cut.range.count)
        joined.append(cutter.window.span.extracting(cut.range))
      }
    }
    var at = 0
    while at < bytes.count {
      let end = min(at + portion, bytes.count)
      cutter.append(bytes.span.extracting(at..<end))
      take(isLast: false)
      if cutter.start > 3 << 20 { cutter.drop(first: cutter.start - 1) }
      at = end
    }
    take(isLast: true)
    #expect(joined == bytes)
    return lengths
  }

  @Test func smallFileIsOnePiece() throws {
    var random = SeededBytes(seed: 1)
    #expect(try cut([]).isEmpty)
    #expect(try cut([7]) == [1])
    #expect(try cut(random.bytes(512 << 10), portion: 1000) == [512 << 10])
    let magic = DatabaseHead.bytes
    #expect(try cut(magic + random.bytes(100_000)) == [100_016])
  }

  @Test(arguments: [999, 65_536, 1 << 20, 16 << 20]) func portionsDoNotMoveCuts(portion: Int) throws
  {
    var random = SeededBytes(seed: 2)
    let bytes = random.bytes(9 << 20)
    #expect(try cut(bytes, portion: portion) == cut(bytes, portion: 300_000))
  }

  @Test func piecesAreWithinTheirLimits() throws {
    var random = SeededBytes(seed: 3)
    let lengths = try cut(random.bytes(20 << 20))
    #expect(lengths.count > 5)
    #expect(lengths.dropLast().allSatisfy { (256 << 10...4 << 20).contains($0) })
    let zeros = try cut([UInt8](repeating: 0, count: 9 << 20))
    #expect(zeros == [4 << 20, 4 << 20, 1 << 20])
  }

  @Test func insertionMovesFewCuts() throws {
    var random = SeededBytes(seed: 4)
    let bytes = random.bytes(16 << 20)
    var changed = bytes
    changed.insert(contentsOf: [1, 2, 3], at: 5 << 20)
    let before = try cut(bytes)
    let after = try cut(changed)
    var same = 0
    while same < min(before.count, after.count),
      before[before.count - 1 - same] == after[after.count - 1 - same]
    { same += 1 }
    #expect(same >= before.count / 2)
  }

  @Test func databasesAreCutAtPageBoundaries() throws {
    var random = SeededBytes(seed: 5)
    let bytes = DatabaseHead.bytes + random.bytes(600_000)
    let lengths = try cut(bytes, portion: 77_777)
    #expect(lengths.dropLast().allSatisfy { $0 == 16 << 10 })
    #expect(lengths.last == bytes.count % (16 << 10))
    let plain = random.bytes(700_000)
    #expect(try cut(plain, isDatabase: true).first == 16 << 10)
    #expect(try cut(plain, isDatabase: true, size: 8 << 30).first == 64 << 10)
    #expect(try cut(plain, isDatabase: true, size: (8 << 30) - 1).first == 16 << 10)
  }

  @Test func aHoleEndsARunOfPieces() throws {
    var cutter = ContentCutter(isDatabase: true, size: nil)
    var offsets: [UInt64] = []
    var lengths: [Int] = []
    let data = [UInt8](repeating: 3, count: 600 << 10)
    func take(isLast: Bool) {
      while let cut = cutter.next(isLast: isLast) {
        offsets.append(cut.offset)
        lengths.append(cut.range.count)
      }
    }
    cutter.append([UInt8](repeating: 1, count: 1000).span)
    take(isLast: false)
    #expect(offsets.isEmpty)
    take(isLast: true)
    cutter.skip(.hole(length: (1 << 20) + 24))
    cutter.append(data.span)
    take(isLast: true)
    #expect(offsets[0] == 0)
    #expect(lengths[0] == 1000)
    #expect(offsets[1] == (1 << 20) + 1024)
    #expect(lengths[1] == (16 << 10) - 1024)
    #expect(offsets[2] == (1 << 20) + (16 << 10))
    #expect(cutter.end == (1 << 20) + 1024 + 600 << 10)
  }
}

struct ContentBuilderTests {
  /// Returns the content of pieces, and the lists stored for it.
  private func build(_ pieces: [Piece]) throws -> (Content, [Digest: [Piece]]) {
    var builder = Content.Builder()
    var lists: [Digest: [Piece]] = [:]
    let store: Content.Builder.StoreList = { level, pieces in
      let bytes = ContentCoding.encodeList(level: level, pieces: pieces)
      lists[Blake2b.hash(bytes)] = pieces
      return Blake2b.hash(bytes)
    }
    for piece in pieces { try builder.append(piece, store: store) }
    return (try builder.finish(store: store), lists)
  }

  private func blob(_ number: Int, length: UInt64) -> Piece {
    .blob(Blake2b.hash(Array("\(number)".utf8)), length: length)
  }

  private func flat(_ pieces: [Piece], _ level: UInt8, _ lists: [Digest: [Piece]]) -> [Piece] {
    if level == 0 { return pieces }
    return pieces.flatMap { piece -> [Piece] in
      guard case .blob(let digest, let length) = piece, let list = lists[digest] else { return [] }
      #expect(list.reduce(0) { $0 + $1.length } == length)
      return flat(list, level - 1, lists)
    }
  }

  @Test func fewPiecesStayInTheEntry() throws {
    let pieces = (0..<256).map { blob($0, length: 16 << 10) }
    let (content, lists) = try build(pieces)
    #expect(content.level == 0)
    #expect(content.pieces == pieces)
    #expect(content.size == 256 * 16 << 10)
    #expect(lists.isEmpty)
  }

  @Test func manyPiecesBecomeAListForEach16MiB() throws {
    let pieces = (0..<5000).map { blob($0, length: 16 << 10) }
    let (content, lists) = try build(pieces)
    #expect(content.level == 1)
    #expect(content.pieces.count == 5)
    #expect(content.pieces.dropLast().allSatisfy { $0.length == 16 << 20 })
    #expect(content.size == 5000 * 16 << 10)
    #expect(flat(content.pieces, 1, lists) == pieces)
  }

  @Test func changeOfOnePieceChangesOneList() throws {
    var pieces = (0..<5000).map { blob($0, length: 16 << 10) }
    let (before, _) = try build(pieces)
    pieces[3000] = blob(99_999, length: 16 << 10)
    let (after, _) = try build(pieces)
    let changed = zip(before.pieces, after.pieces).filter { $0.0 != $0.1 }
    #expect(changed.count == 1)
  }

  @Test func veryManyPiecesBecomeListsOfLists() throws {
    // 33 GiB in pieces of 4 MiB, with a hole of 20 GiB in the middle.
    var pieces = (0..<8500).map { blob($0, length: 4 << 20) }
    pieces.insert(.hole(length: 20 << 30), at: 4000)
    let (content, lists) = try build(pieces)
    #expect(content.level == 2)
    #expect(content.pieces.count == 3)
    #expect(content.size == 8500 * 4 << 20 + 20 << 30)
    #expect(flat(content.pieces, 2, lists) == pieces)
  }

  @Test func adjacentHolesAreMerged() throws {
    let (content, _) = try build([
      .hole(length: 5), .hole(length: 0), .hole(length: 7), blob(1, length: 3),
    ])
    #expect(content.pieces == [.hole(length: 12), blob(1, length: 3)])
  }

  @Test func listHasTheDocumentedBytes() {
    let x = Blake2b.hash(Array("1".utf8)).hex
    let data = ContentCoding.encodeList(
      level: 0, pieces: [blob(1, length: 10), .hole(length: 500)])
    #expect(Hex.encode(data) == "a10182820a5820" + x + "1901f4")
    let lists = ContentCoding.encodeList(level: 1, pieces: [blob(1, length: 1 << 24)])
    #expect(Hex.encode(lists) == "a200010181821a010000005820" + x)
  }

  @Test func invalidListsAreRefused() throws {
    let pieces = [blob(1, length: 10), .hole(length: 5)]
    let bytes = ContentCoding.encodeList(level: 0, pieces: pieces)
    #expect(try ContentCoding.decodeList(bytes, level: 0, length: 15, object: "x") == pieces)
    for (level, length) in [(1, 15), (0, 14), (0, 16)] as [(UInt8, UInt64)] {
      let error = storeError {
        try ContentCoding.decodeList(bytes, level: level, length: length, object: "x")
      }
      #expect(error?.code == .damaged)
    }
    let bad: [[Piece]] = [
      [.hole(length: 5), .hole(length: 5)], [blob(1, length: 9 << 20)], [],
      [blob(1, length: 0)],
    ]
    for pieces in bad {
      let bytes = ContentCoding.encodeList(level: 0, pieces: pieces)
      let length = pieces.reduce(0) { $0 + $1.length }
      let error = storeError {
        try ContentCoding.decodeList(bytes, level: 0, length: length, object: "x")
      }
      #expect(error?.code == .damaged, "\(pieces)")
    }
  }
}
