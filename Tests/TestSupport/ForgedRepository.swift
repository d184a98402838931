package import Codecs
package import Foundation

/// A repository built byte by byte according to docs/repository-format.md, so that it may have
/// content that no writer produces.
///
/// Blobs are added first; `write(to:)` writes the packs, one index and the snapshots. Closures
/// change the parts that should be wrong. In a run over encrypted repositories, the forged content
/// is encrypted, as by an attacker who can write to the store and knows a recipient.
package struct ForgedRepository {
  /// The location of a blob in an index or in a pack's contents.
  package struct Entry {
    package var digest: Digest
    package var pack: UInt32 = 0
    package var frame: UInt16 = 0
    package var kind: UInt8
    package var flags: UInt8 = 0
    package var offset: UInt32 = 0
    package var length: UInt32 = 0
  }

  /// The location of a frame in its pack.
  package struct Frame {
    package var offset: UInt64
    package var stored: UInt32
    package var plain: UInt32
  }

  /// A pack as listed in the index.
  package struct Pack {
    package var id: Digest
    package var size: UInt64
    package var frames: [Frame]
  }

  /// The contents of the index.
  package struct Index {
    package var packs: [Pack] = []
    package var entries: [Entry] = []
  }

  package static let id = Blake2b.hash(Array("a forged repository".utf8))
  /// A new frame is begun after this many plain bytes.
  private static let frameLimit = 1 << 18

  private var blobs: [(kind: UInt8, bytes: [UInt8])] = []
  private var known: [Set<Digest>] = [[], [], []]
  private var snapshots: [[UInt8]] = []
  private var sequence = 0

  /// Changes the contents of the index; its entries are sorted afterwards.
  package var changeIndex: (inout Index) -> Void = { _ in }
  /// Changes the contents table of a pack.
  package var changeContents: (inout [Entry]) -> Void = { _ in }
  /// Changes the stored bytes of a frame.
  package var changeFrame: (Int, inout [UInt8]) -> Void = { _, _ in }

  /// Creates an empty repository.
  package init() {}

  /// Adds a blob if it is not there yet. Returns its hash.
  @discardableResult
  package mutating func add(_ bytes: [UInt8], kind: UInt8) -> Digest {
    let digest = Blake2b.hash(bytes)
    if known[Int(kind)].insert(digest).inserted { blobs.append((kind, bytes)) }
    return digest
  }

  /// Adds a tree of encoded entries in the given order.
  @discardableResult
  package mutating func addTree(_ entries: [[UInt8]]) -> Digest {
    var encoder = CBOREncoder()
    encoder.beginMap()
    if !entries.isEmpty {
      encoder.key(0)
      encoder.beginArray(count: entries.count)
      for entry in entries { encoder.encoded(entry) }
      encoder.endArray()
    }
    encoder.endMap()
    return add(encoder.finish(), kind: 1)
  }

  /// Adds a snapshot of a tree with only the keys that a restore needs.
  package mutating func addBareSnapshot(_ tree: Digest) {
    snapshots.append(
      Array(
        """
        {"format":"sandboxctl-snapshot","version":1,"repository":"\(Self.id.hex)",\
        "time":"2026-11-01T10:00:00Z","tree":"\(tree.hex)"}

        """.utf8))
  }

  /// Adds a snapshot of a tree; `change` changes its text.
  package mutating func addSnapshot(
    _ tree: Digest, _ change: (String) -> String = { $0 }
  ) {
    sequence += 1
    let zeros = String(repeating: "0", count: 64)
    let text = """
      {"format":"sandboxctl-snapshot","version":1,"repository":"\(Self.id.hex)","source":"\(zeros)",\
      "sequence":\(sequence),"time":"2026-11-01T10:00:0\(sequence)Z","host":"host","user":"user",\
      "device":{"identity":"device","platform":"linux","layout":"folder","root":"/"},\
      "scope":{"kind":"device"},"reason":"manual","policy":{"name":"everything","digest":"\(zeros)"},\
      "tree":"\(tree.hex)","program":"forged","totals":{"entries":1,"files":1,"bytes":1}}

      """
    snapshots.append(Array(change(text).utf8))
  }

  // MARK: - Writing

  /// Writes the repository into a new directory.
  package func write(to directory: URL) throws {
    let packs = (0..<256).map { "packs/\(Hex.encode([UInt8($0)]))" }
    for name in ["condemned", "index", "leases", "pins", "snapshots"] + packs {
      try FileManager.default.createDirectory(
        at: directory.appendingPathComponent(name), withIntermediateDirectories: true)
    }
    try Data(Self.configuration.utf8).write(to: directory.appendingPathComponent("repository.json"))
    var index = Index()
    for isData in [true, false] {
      let members = blobs.filter { ($0.kind == 0) == isData }
      if !members.isEmpty { try writePack(members, in: directory, &index) }
    }
    changeIndex(&index)
    try save(Self.encode(index), "index", ".index", in: directory)
    for snapshot in snapshots { try save(snapshot, "snapshots", ".json", in: directory) }
  }

  private func save(
    _ bytes: [UInt8], _ kind: String, _ suffix: String, in directory: URL
  ) throws {
    let stored = try TestEncryption.stored(bytes)
    let name = Blake2b.hash(stored).hex + suffix + TestEncryption.suffix
    try Data(stored).write(to: directory.appendingPathComponent("\(kind)/\(name)"))
  }

  private func writePack(
    _ members: [(kind: UInt8, bytes: [UInt8])], in directory: URL, _ index: inout Index
  ) throws {
    var pack = ForgedPack()
    var compressor = try ZstdCompressor()
    var entries: [Entry] = []
    var plain: [UInt8] = []
    var first = 0
    for (number, member) in members.enumerated() {
      entries.append(
        Entry(
          digest: Blake2b.hash(member.bytes), frame: UInt16(pack.frames.count), kind: member.kind,
          offset: UInt32(512 + plain.count), length: UInt32(member.bytes.count)))
      plain += member.bytes
      guard plain.count > Self.frameLimit || number + 1 == members.count else { continue }
      let name = ".sandboxctl/forged/\(first)"
      try pack.append(Self.member(name, plain), with: &compressor, changeFrame)
      (plain, first) = ([], number + 1)
    }
    var reported = entries
    changeContents(&reported)
    let contents = Self.contents(reported)
    let end = [UInt8](repeating: 0, count: 1024)
    let last = try Self.member(".sandboxctl/contents", contents) + end
    try pack.append(last, with: &compressor) { _, _ in }
    let bytes = try TestEncryption.stored(pack.bytes + pack.seekTable())
    let id = Blake2b.hash(bytes)
    let location = directory.appendingPathComponent("packs/\(id.hex.prefix(2))")
    try FileManager.default.createDirectory(at: location, withIntermediateDirectories: true)
    try Data(bytes).write(
      to: location.appendingPathComponent("\(id.hex).tar.zst\(TestEncryption.suffix)"))
    for number in entries.indices { entries[number].pack = UInt32(index.packs.count) }
    index.packs.append(Pack(id: id, size: UInt64(bytes.count), frames: pack.frames))
    index.entries += entries
  }

  private static func member(_ name: String, _ content: [UInt8]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var writer = try TarWriter()
    try writer.append(
      TarMember(path: Array(name.utf8), size: content.count), content: content, to: &bytes)
    return bytes
  }

  private static let recipients =
    TestEncryption.recipients.map { "\"\($0)\"" }.joined(separator: ", ")

  private static let configuration = """
    {"format": "sandboxctl-repository", "version": 1, "id": "\(id.hex)", "hash": "blake2b-256",
     "compression": "zstd", "chunking": {"id": "gear-1", "min": 262144, "avg": 1048576,
     "max": 4194304, "gear": "\(GearChunker.tableDigest.hex)", "sqlite": 16384},
     "encryption": "\(TestEncryption.isOn ? "age" : "none")",
     "recipients": [\(recipients)], "features": {"read": [], "write": [], "prune": []},
     "program": "forged"}
    """
}
