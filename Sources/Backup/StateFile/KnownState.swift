internal import Codecs
internal import SystemIO

/// The contents of a valid state file.
struct KnownState: Sendable {
  let file: RecordFile
  let head: Head
  let containers: [KnownContainer]

  /// Opens the state in a file, from the newest of its heads that has a valid table of containers.
  ///
  /// - Throws: the reason why there is none.
  init(_ file: consuming Descriptor, _ key: StateKey) throws(Fault) {
    let heads = Self.heads(file)
    guard !heads.isEmpty else { throw Fault("it is damaged or of another version") }
    guard heads.contains(where: { $0.key == key }) else {
      throw Fault("it belongs to another source or repository")
    }
    for head in heads where head.key == key {
      guard let table = head.containers?.bytes(in: file),
        let containers = ContainerTable.read(table)
      else { continue }
      self.head = head
      self.containers = containers
      self.file = RecordFile(file, end: max(head.end, Head.firstRecord))
      return
    }
    throw Fault("it is damaged")
  }

  /// Returns the valid heads, the newest first.
  private static func heads(_ file: borrowing Descriptor) -> [Head] {
    var heads: [Head] = []
    for location in Head.locations {
      guard let bytes = try? file.read(count: Head.size, at: location),
        let head = Head(bytes)
      else { continue }
      heads.append(head)
    }
    return heads.sorted { $0.generation > $1.generation }
  }
}

extension KnownState {
  /// The reason why a state file is not used.
  struct Fault: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
  }

  /// The head of a state file (docs/state-file.md, "Head").
  ///
  /// A state file has two positions for it, written in turn, so that one head is valid at every
  /// moment.
  struct Head: Sendable {
    let key: StateKey
    /// The number of the write; the greater of two valid heads is current.
    var generation: UInt64 = 0
    /// The table of containers; nil in the file of an interrupted run.
    var containers: RecordPointer?
    /// The offset at which the records end.
    var end: UInt64
    /// The size in bytes of the file when it was last rewritten.
    var wholeSize: UInt64
    /// The program that wrote the head, and its version.
    var program: String
    /// The earliest boot in which contents were recorded, as far as they are still relied on.
    var boot = Boot.unknown

    static let magic: [UInt8] = Array("sbxstate".utf8)
    static let version: UInt32 = 3
    static let size = 512
    /// The offsets of the two heads: in different pages and sectors.
    static let locations: [UInt64] = [0, 4096]
    static let firstRecord: UInt64 = 8192
    private static let programLimit = 128
    private static let bootAt = 256
    private static let sumAt = size - 8

    /// Whether the file holds more unused bytes than it had bytes when it was last rewritten.
    var isWorthCompacting: Bool { end > 2 * wholeSize + (4 << 20) }

    /// The offset to which this head is written.
    var location: UInt64 { Self.locations[Int(generation % 2)] }

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
      bytes += [UInt8](repeating: 0, count: Self.bootAt - bytes.count)
      LittleEndian.append(boot.word, to: &bytes)
      bytes += [UInt8](repeating: 0, count: Self.sumAt - bytes.count)
      LittleEndian.append(Blake2b.hash(bytes).leadingWord, to: &bytes)
      return bytes
    }

    /// Reads a head; returns nil if it is damaged or of another version.
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
      boot = Boot(word: LittleEndian.integer(span, at: Self.bootAt))
    }

    /// Creates the head of a file without records.
    init(
      _ key: StateKey, program: String, end: UInt64 = firstRecord, boot: Boot = .unknown
    ) {
      self.key = key
      self.program = program
      self.boot = boot
      self.end = end
      wholeSize = end
    }
  }
}
