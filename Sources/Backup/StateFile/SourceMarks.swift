internal import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A host's record of the marks that the last scans of a source found, for one run that holds the
/// source's lock.
///
/// It is a file of its own beside the state: it is read before the scan, and is valid whether or
/// not the snapshot is created. Marks that it lacks are looked for again.
struct SourceMarks {
  private let directory: StateDirectory
  private let key: StateKey
  /// The recorded marks, for the scan.
  let markCache: ExclusionMarkCache

  /// Opens the record of earlier scans; returns nil if there is no directory for it.
  init?(
    of device: Device, in repository: Repository, cache: ByteString?, program: String,
    under lock: SourceLock?
  ) {
    guard let cache, let lock else { return nil }
    key = StateKey(repository: repository.id, source: SourceIdentity.digest(of: device))
    guard let directory = try? StateDirectory(key, in: cache, under: lock),
      let start = try? directory.time(key)
    else { return nil }
    self.directory = directory
    markCache = ExclusionMarkCache(
      Self.read(directory, key) ?? MarkTable(), at: RunClock(start: min(start, Host.now())),
      by: program)
  }

  private static func read(_ directory: StateDirectory, _ key: StateKey) -> MarkTable? {
    guard case .open(let file)? = try? directory.open(key.marks),
      let bytes = try? file.readAll(limit: MarkTable.sizeLimit)
    else { return nil }
    return MarkTable(bytes, key)
  }

  /// Writes the marks that a scan of the source, or of a part of it, found. A file that a crash of
  /// the machine damaged is not used.
  func store(_ found: ExclusionMarkCache, isPart: Bool) {
    guard let bytes = found.table(isPart: isPart)?.encoded(key),
      let file = try? AtomicFile(in: directory.directory, permissions: 0o600)
    else { return }
    do throws(SystemError) {
      try file.write(bytes)
      try file.commit(as: key.marks, durably: false)
    } catch {}
  }
}

extension MarkTable {
  private static let magic: [UInt8] = Array("sbxmarks".utf8)
  private static let version: UInt64 = 1
  private static let head = 96
  /// The maximum size of a file in bytes.
  static let sizeLimit = head + 16 * limit + 8

  /// Returns the bytes of a file for a sorted table, or nil if there are too many entries.
  func encoded(_ key: StateKey) -> [UInt8]? {
    guard count <= Self.limit else { return nil }
    var bytes = Self.magic
    bytes.reserveCapacity(Self.head + 8 * plain.count + 16 * marked.count + 8)
    LittleEndian.append(Self.version, to: &bytes)
    key.repository.append(to: &bytes)
    key.source.append(to: &bytes)
    LittleEndian.append(UInt64(plain.count), to: &bytes)
    LittleEndian.append(UInt64(marked.count), to: &bytes)
    for fingerprint in plain { LittleEndian.append(fingerprint, to: &bytes) }
    for (fingerprint, marks) in marked.sorted(by: { $0.key < $1.key }) {
      LittleEndian.append(fingerprint, to: &bytes)
      LittleEndian.append(marks.rawValue, to: &bytes)
    }
    LittleEndian.append(Blake2b.hash(bytes).leadingWord, to: &bytes)
    return bytes
  }

  /// Reads a file; returns nil if it is damaged or belongs to another version or source.
  init?(_ bytes: [UInt8], _ key: StateKey) {
    let (span, end) = (bytes.span, bytes.count - 8)
    guard end >= Self.head, bytes.starts(with: Self.magic),
      LittleEndian.integer(span, at: 8) == Self.version,
      LittleEndian.integer(span, at: end) == Blake2b.hash(span.extracting(0..<end)).leadingWord,
      Digest(span.extracting(16..<48)) == key.repository,
      Digest(span.extracting(48..<80)) == key.source
    else { return nil }
    let plainCount: UInt64 = LittleEndian.integer(span, at: 80)
    let markedCount: UInt64 = LittleEndian.integer(span, at: 88)
    guard max(plainCount, markedCount) <= Self.limit,
      Self.head + 8 * Int(plainCount) + 16 * Int(markedCount) == end
    else { return nil }
    self.init()
    plain.reserveCapacity(Int(plainCount))
    for number in 0..<Int(plainCount) {
      let fingerprint: UInt64 = LittleEndian.integer(span, at: Self.head + 8 * number)
      guard plain.last.map({ $0 <= fingerprint }) ?? true else { return nil }
      plain.append(fingerprint)
    }
    for number in 0..<Int(markedCount) {
      let offset = Self.head + 8 * plain.count + 16 * number
      marked[LittleEndian.integer(span, at: offset)] =
        MarkSet(rawValue: LittleEndian.integer(span, at: offset + 8))
    }
  }
}
