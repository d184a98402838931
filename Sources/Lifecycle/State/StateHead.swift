internal import Codecs
internal import SystemIO

/// The head of a state file (docs/state-file.md, "Head").
///
/// A state has two places for it, written in turn, so that one is whole at every moment.
struct StateHead: Sendable {
  let key: StateKey
  /// Rises with each writing; the greater of two whole heads holds.
  var generation: UInt64 = 0
  /// The table of containers; in the file of an interrupted run nothing.
  var containers: RecordPointer?
  /// Where the records end.
  var end: UInt64
  /// How long the file was when it was last written as a whole.
  var wholeSize: UInt64
  /// The program and its version that wrote the head.
  var program: String

  static let magic: [UInt8] = Array("sbxstate".utf8)
  static let version: UInt32 = 2
  static let size = 512
  /// Where the two heads lie: in different pages and sectors.
  static let places: [UInt64] = [0, 4096]
  static let firstRecord: UInt64 = 8192
  private static let programLimit = 128
  private static let sumAt = size - 8

  /// Whether what is dead in the file is more than what was alive when it was written as a whole.
  var isWorthCompacting: Bool { end > 2 * wholeSize + (4 << 20) }

  /// Which place this head is written to.
  var place: UInt64 { Self.places[Int(generation % 2)] }

  func encoded() -> [UInt8] {
    var bytes = Self.magic
    LittleEndian.append(Self.version, to: &bytes)
    LittleEndian.append(UInt32(containers == nil ? 0 : 1), to: &bytes)
    LittleEndian.append(generation, to: &bytes)
    key.repository.append(to: &bytes)
    key.source.append(to: &bytes)
    (containers ?? .nowhere).append(to: &bytes)
    LittleEndian.append(end, to: &bytes)
    LittleEndian.append(wholeSize, to: &bytes)
    let name = Array(program.utf8.prefix(Self.programLimit))
    bytes.append(UInt8(name.count))
    bytes += name
    bytes += [UInt8](repeating: 0, count: Self.sumAt - bytes.count)
    LittleEndian.append(Blake2b.hash(bytes).leadingWord, to: &bytes)
    return bytes
  }

  /// Reads a head; nothing when it is not whole or of another version.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.size, bytes.starts(with: Self.magic) else { return nil }
    let span = bytes.span
    guard
      LittleEndian.integer(span, at: 8) == Self.version,
      LittleEndian.integer(span, at: Self.sumAt)
        == Blake2b.hash(span.extracting(0..<Self.sumAt)).leadingWord,
      let repository = Digest(span.extracting(24..<56)),
      let source = Digest(span.extracting(56..<88))
    else { return nil }
    key = StateKey(repository: repository, source: source)
    generation = LittleEndian.integer(span, at: 16)
    let hasContainers = LittleEndian.integer(span, at: 12, as: UInt32.self) != 0
    containers = hasContainers ? RecordPointer(span, at: 88) : nil
    end = LittleEndian.integer(span, at: 108)
    wholeSize = LittleEndian.integer(span, at: 116)
    let length = min(Int(span[124]), Self.programLimit)
    program = String(decoding: bytes[125..<(125 + length)], as: UTF8.self)
  }

  /// A head of a file without records.
  init(_ key: StateKey, program: String, end: UInt64 = firstRecord) {
    self.key = key
    self.program = program
    self.end = end
    wholeSize = end
  }
}
