internal import ArchiveStore
internal import Codecs
public import SystemIO

/// The record of a folder as this run found it, entry by entry in the order of their names' bytes.
///
/// One thread makes one. An entry that comes out of order, or is too long, is left out of it: that
/// costs a reading in the next run.
public struct FolderRecord {
  private let file: RecordFile?
  private var page: [UInt8] = []
  private var places: [RecordPlace] = []
  private var count: UInt32 = 0
  /// The name that was added last, once there is one.
  private var last: [UInt8] = []
  private var hasLast = false
  /// Whether pages were lost, as on a full disk: then the folder is not recorded.
  private var isBroken = false

  init(_ file: RecordFile?) { self.file = file }

  /// Adds an entry that was looked at or read anew.
  ///
  /// - Parameters:
  ///   - status: its status, of after the reading if it was read.
  ///   - isSettled: whether it had stood still long enough when it was read: `ChangeRules.isSettled`.
  ///   - encoded: what `TreeEntry.encoded()` gave; nothing for what is not stored.
  ///   - folder: of a folder, where its own record is.
  public mutating func add(
    _ name: Span<UInt8>, _ status: FileStatus, isSettled: Bool, encoded: [UInt8]?,
    folder: RecordPlace? = nil
  ) {
    guard follows(name),
      EntryLayout.append(name, status, isSettled: isSettled, encoded, folder, to: &page)
    else {
      return
    }
    didAdd()
  }

  /// Adds an entry of an earlier run of which nothing changed, nor below it.
  public mutating func keep(_ known: KnownEntry) { keep(known, folder: known.folder) }

  /// Adds an entry of an earlier run of which nothing changed.
  ///
  /// - Parameter folder: of a folder, where its own record is now; nothing when it has none.
  public mutating func keep(_ known: KnownEntry, folder: RecordPlace?) {
    guard known.name.withSpan({ follows($0) }) else { return }
    if folder == known.folder {
      page += known.bytes
    } else {
      page += known.bytes(movingFolderTo: folder)
    }
    didAdd()
  }

  private mutating func follows(_ name: Span<UInt8>) -> Bool {
    if hasLast, !last.span.precedes(name) { return false }
    last.removeAll(keepingCapacity: true)
    last.append(name)
    hasLast = true
    return file != nil
  }

  private mutating func didAdd() {
    count += 1
    guard page.count >= EntryPage.size else { return }
    if let place = file?.append(page) { places.append(place) } else { isBroken = true }
    page.removeAll(keepingCapacity: true)
  }

  /// Writes the record; nothing when that is not possible.
  consuming func write(tree: TreeReference?) -> RecordPlace? {
    guard let file, !isBroken else { return nil }
    if !places.isEmpty, !page.isEmpty {
      guard let place = file.append(page) else { return nil }
      places.append(place)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(FolderLayout.header + page.count)
    FolderLayout.append(tree, count: count, isPaged: !places.isEmpty, to: &bytes)
    if places.isEmpty { bytes += page } else { for place in places { place.append(to: &bytes) } }
    return file.append(bytes)
  }
}

/// The places of a folder record's fields (docs/state-file.md, "Folder").
enum FolderLayout {
  static let flags = 0
  static let count = 4
  static let tree = 8
  static let header = 40

  static let hasTree: UInt32 = 1
  static let isPaged: UInt32 = 2

  static func append(
    _ tree: TreeReference?, count: UInt32, isPaged: Bool, to bytes: inout [UInt8]
  ) {
    LittleEndian.append((tree == nil ? 0 : hasTree) | (isPaged ? Self.isPaged : 0), to: &bytes)
    LittleEndian.append(count, to: &bytes)
    if let tree {
      tree.digest.append(to: &bytes)
    } else {
      bytes += [UInt8](repeating: 0, count: Digest.byteCount)
    }
  }
}
