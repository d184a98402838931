import ArchiveStore
import Codecs
import SystemIO

@testable import ArchiveStore

/// Generates the seeds of the corpus: small valid inputs for each target, which are always the
/// same.
///
/// The seeds of repository objects come from the golden repository, so that new parts of the format
/// in it become seeds as well.
struct Seeds {
  private let project: ByteString
  private let corpus: ByteString

  /// Runs `fuzz --seeds PROJECT CORPUS`.
  static func main(_ words: [String]) -> CInt {
    guard words.count == 2 else {
      print("usage: fuzz --seeds PROJECT CORPUS")
      return 2
    }
    do {
      let seeds = Seeds(project: ByteString(words[0]), corpus: ByteString(words[1]))
      try seeds.writeRepository()
      try seeds.write(StateSeeds.all())
      try seeds.write(ModelSeeds.all(project: seeds.project))
      try seeds.write(DeviceSeeds.all)
      try seeds.write(HashRuns.seeds)
      try seeds.write(LogSums.seeds)
      try seeds.write(AgeFuzz.seeds)
      try seeds.write(MobileSyncSeeds.all())
      try seeds.write(ManifestSeeds.all())
      try seeds.write(AndroidSeeds.all)
      try seeds.write(AppDataSeeds.all)
      try seeds.write(PeerSeeds.all)
      try seeds.write(InterAppSeeds.all)
      try seeds.write(SFTPSeeds.all)
      try seeds.write(LocationSeeds.all)
      try seeds.write(StoreSeeds.all)
      try seeds.write(MigrationSeeds.all)
      return 0
    } catch {
      print("fuzz: error: cannot generate the seeds: \(error)")
      return 1
    }
  }

  /// Writes seeds, numbered by target.
  private func write(_ seeds: [(target: String, bytes: [UInt8])]) throws {
    var counts: [String: Int] = [:]
    for (target, bytes) in seeds {
      let number = counts[target, default: 0]
      counts[target] = number + 1
      let directory = try Directory.make(path: corpus.appending(ByteString(target)))
      let name = ByteString("seed-\(number < 10 ? "0" : "")\(number)")
      if try directory.statusIfPresent(name) != nil { try directory.remove(name) }
      try directory.create(name, permissions: 0o644).write(bytes)
    }
  }

  // MARK: - The golden repository

  private func writeRepository() throws {
    let path = project.appending("Tests/Vectors/repository-v1/repository")
    let storage = try LocalStorage(path: path)
    let repository = try Repository.open(storage)
    let settings = try storage.load(RepositoryLayout.settings, limit: 1 << 20)
    var seeds = [("settings", settings), ("settings", condemned)]
    for name in try storage.list(RepositoryLayout.snapshots) {
      let text = try storage.load(RepositoryLayout.snapshots.appending(name), limit: 1 << 20)
      seeds.append(("snapshot", Array(text.dropLast())))
    }
    for object in try LoadedIndex.loadAll(from: repository.storage).objects {
      let bytes = try storage.load(RepositoryLayout.plain.index(object.id), limit: 1 << 20)
      seeds.append(("index", bytes))
      for number in 0..<object.packs { seeds += try self.seeds(of: object.pack(number), storage) }
    }
    seeds += try blobs(try repository.beginReading())
    try write(seeds)
  }

  private let condemned = Array(
    """
    {"format": "sandboxctl-condemned", "version": 1, "packs": \
    ["50ea84ed5a0e0264748d5e36e49a7494a373a10468ad4ebf532f813ceed5d6b1"]}
    """.utf8)

  /// Returns a small pack, its end, its frames, and the content of its last frame.
  private func seeds(
    of pack: IndexObject.Pack, _ storage: LocalStorage
  ) throws -> [(String, [UInt8])] {
    let path = RepositoryLayout.plain.pack(pack.id)
    let bytes = try storage.load(path, limit: 1 << 20)
    var seeds = bytes.count < 16_000 ? [("pack", bytes)] : []
    let table = try SeekTable(tail: bytes.span)
    seeds.append(("seek-table", Array(bytes.suffix(table.encodedSize))))
    for (frame, location) in zip(table.frames, table.frameRanges) where frame.storedSize < 2000 {
      let stored = Array(bytes[location.stored])
      var decompressor = try ZstdDecompressor()
      let plain = try decompressor.decompress(stored, limit: FormatLimit.frame)
      seeds.append(("frame", stored))
      if plain.count < 8000 { seeds.append(("tar", plain)) }
    }
    guard let last = table.frameRanges.last else { return seeds }
    var decompressor = try ZstdDecompressor()
    let plain = try decompressor.decompress(
      Array(bytes[last.stored]), limit: FormatLimit.frame)
    try TarReader.forEach(in: plain.span) { member, content in
      if member.path.elementsEqual(PackTables.Contents.memberName.bytes), content.count < 4000 {
        seeds.append(("contents", content))
      }
    }
    return seeds
  }

  /// Returns trees with each kind of entry, and lists of both levels.
  private func blobs(_ reader: RepositoryReader) throws -> [(String, [UInt8])] {
    var seeds: [(String, [UInt8])] = []
    var shapes: Set<Set<UInt8>> = []
    let objects = try LoadedIndex.loadAll(from: reader.repository.storage).objects
    for object in objects {
      for number in 0..<object.blobs {
        guard let record = object.record(number) else { continue }
        let bytes = try reader.readBlob(record.id)
        switch record.kind {
        case .data: continue
        case .list: seeds += list(bytes)
        case .tree where bytes.count < 3000:
          seeds.append(("tree", bytes))
          guard case .page(let entries) = try TreeCoding.decode(bytes, object: "tree") else {
            continue
          }
          for entry in entries {
            let encoded = try entry.encoded()
            // One entry for each combination of first and last byte is sufficient.
            if shapes.insert(Set(encoded.prefix(1) + encoded.suffix(1))).inserted {
              seeds.append(("entry", encoded))
            }
          }
        case .tree: continue
        }
      }
    }
    return seeds
  }

  /// Returns a list after its level and its length in the file, as its target reads it.
  private func list(_ bytes: [UInt8]) -> [(String, [UInt8])] {
    guard bytes.count < 4000 else { return [] }
    var decoder = CBORDecoder(bytes)
    var level: UInt64 = 0
    var length: UInt64 = 0
    do {
      try decoder.beginMap()
      while let key = try decoder.nextKey() {
        if key == 0 {
          level = try decoder.unsigned()
        } else {
          length = try ContentCoding.size(of: ContentCoding.decode(&decoder))
        }
      }
    } catch { return [] }
    var seed = [UInt8(level)]
    LittleEndian.append(length, to: &seed)
    return [("list", seed + bytes)]
  }
}
