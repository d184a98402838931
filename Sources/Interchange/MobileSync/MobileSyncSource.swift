internal import ArchiveStore
internal import Codecs
internal import SandboxModel
package import SystemIO

/// The entries of an iTunes or Finder backup under their logical paths (`MobileSyncDomains`).
///
/// Entries arrive in the order of the manifest; other threads read small files ahead. A content
/// that is missing or damaged is recorded in `skipped`; everything else is read.
package struct MobileSyncSource: ~Copyable, EntrySource {
  /// The path of the backup for messages.
  private let path: ByteString
  /// The description of the device.
  package let device: MobileSyncDevice
  private let hasDirectories: Bool
  /// The state in which the backup was opened; nil after it was compared.
  private var marks: MobileSyncMarks?
  private var reader: MobileSyncEntryReader
  private var batches: MobileSyncReadAhead
  /// The current batch, and the position of the next entry in it.
  private var batch = MobileSyncBatch()
  private var position = 0
  /// The range of the rest of a small content in the batch.
  private var small = 0..<0
  /// The fault of a small content.
  private var fault: PayloadFault?
  /// The content of a larger file.
  private var content: MobileSyncPayload?
  package private(set) var skipped: SkippedEntries

  /// The name of the attribute in which an import keeps the class of data protection, in decimal
  /// digits, unless it is the default class (3) or none.
  static let protectionAttribute = ProtectionClass.attribute

  /// Begins to read a backup.
  ///
  /// - Parameter threads: the number of threads that read and decrypt small files.
  package init(
    _ backup: consuming MobileSyncBackup, threads: Int = min(3, Host.processors)
  ) throws(InterchangeError) {
    var apps = Set(backup.device.apps.map(\.identifier))
    var skipped = backup.remarks
    let manifest = try backup.openManifest(addingAppsTo: &apps, skipping: &skipped)
    let root = try MobileSyncBackup.system(backup.path) { () throws(SystemError) in
      try backup.directory.duplicate()
    }
    hasDirectories = manifest.hasDirectories
    marks = backup.marks
    reader = MobileSyncEntryReader(
      domains: MobileSyncDomains(apps: apps),
      contents: MobileSyncContents(in: root, hasDirectories: hasDirectories), keys: backup.keys,
      madeAt: backup.device.madeAt, hasDirectories: hasDirectories)
    batches = MobileSyncReadAhead(manifest, threads: threads)
    self.skipped = skipped
    (path, device) = (backup.path, backup.device)
  }

  package var madeAt: Timestamp? { device.madeAt }

  package var apps: [ForeignApp] {
    device.apps.map { ForeignApp(identifier: $0.identifier, build: $0.build) }
  }

  package mutating func recognize(in contents: KnownContents) { reader.known = contents }

  package mutating func next() throws(InterchangeError) -> ForeignEntry? {
    content = nil
    (small, fault) = (0..<0, nil)
    while let next = try nextEntry() {
      switch next.content {
      case .none: return next.entry
      case .bytes(let range):
        small = range
        return next.entry
      case .damaged(let found):
        fault = found
        return next.entry
      case .unopened(let record):
        var entry = next.entry
        do throws(RecordFault) {
          try open(record, &entry)
          return entry
        } catch { skipped.append(path: record.shownPath, reason: error.reason) }
      }
    }
    return nil
  }

  /// Returns the next entry, with the content of a small file.
  private mutating func nextEntry() throws(InterchangeError) -> MobileSyncBatch.Entry? {
    while position == batch.entries.count {
      guard let next = try nextBatch() else {
        noteChange()
        return nil
      }
      skipped.append(next.skipped)
      (batch, position) = (next, 0)
    }
    defer { position += 1 }
    return batch.entries[position]
  }

  /// Records, once, that the backup changed while it was read.
  private mutating func noteChange() {
    guard let marks = marks.take(), let root = try? Directory.open(resolved: path),
      MobileSyncMarks(in: root) != marks
    else { return }
    skipped.append(
      path: MobileSyncBackup.status,
      reason: "the backup changed while it was read, so files may be missing or wrong: import it "
        + "again when it is complete")
  }

  private mutating func nextBatch() throws(InterchangeError) -> MobileSyncBatch? {
    do throws(ManifestFault) { return try batches.next(by: reader) } catch {
      let name = hasDirectories ? MobileSyncBackup.database : MobileSyncBackup.records
      throw error.error(in: path.appending(name))
    }
  }

  /// Opens the content of a larger file.
  private mutating func open(
    _ record: MobileRecord, _ entry: inout ForeignEntry
  ) throws(RecordFault) {
    let payload = try reader.payload(of: record)
    reader.add(payload, of: record, to: &entry, skipping: &skipped)
    content = consume payload
  }

  /// The path of the entry whose content is read, for messages.
  private var currentPath: ByteString { batch.entries[position - 1].shownPath }

  package mutating func detachContent() -> (any DetachedContent)? {
    guard let payload = content.take() else { return nil }
    return MobileSyncContent(payload, of: currentPath)
  }

  package mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    do throws(PayloadFault) {
      if let fault { throw fault }
      if !small.isEmpty {
        let part = small.prefix(buffer.count)
        batch.bytes.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[part])) }
        small.removeFirst(part.count)
        return part.count
      }
      return try content?.read(into: buffer) ?? 0
    } catch {
      content = nil
      fault = nil
      throw error.error(of: currentPath)
    }
  }
}
