internal import ArchiveStore
internal import Codecs
package import SystemIO

/// The record of a directory as this run found it, with the entries in the order of their names'
/// bytes.
///
/// For use by one thread. An entry that is out of order or too long is omitted and is read again in
/// the next run.
package struct DirectoryRecord {
  private let file: RecordFile?
  private var page: [UInt8] = []
  private var places: [RecordPointer] = []
  private var count: UInt32 = 0
  /// The last name that was added, if `hasLast` is true.
  private var last: [UInt8] = []
  private var hasLast = false
  /// Whether pages were lost, for example on a full disk: then the directory is not recorded.
  private var isBroken = false

  init(_ file: RecordFile?) { self.file = file }

  /// Adds an entry that was scanned or read.
  ///
  /// - Parameters:
  ///   - status: the status; if the entry was read, the status after reading.
  ///   - isStable: whether it was unchanged long enough when it was read: `ChangeRules.isStable`.
  ///   - encoded: the result of `TreeEntry.encoded()`, or nil for an entry that is not stored.
  ///   - directory: the location of a directory's own record.
  package mutating func add(
    _ name: Span<UInt8>, _ status: FileStatus, isStable: Bool, encoded: [UInt8]?,
    directory: RecordPointer? = nil
  ) {
    guard follows(name),
      EntryLayout.append(
        name, status: status, isStable: isStable, encoded: encoded, directory: directory, to: &page)
    else {
      return
    }
    didAdd()
  }

  /// Adds an entry of an earlier run that is unchanged, including everything below it.
  package mutating func keep(_ known: KnownEntry) { keep(known, directory: known.directory) }

  /// Adds an entry of an earlier run that is unchanged.
  ///
  /// - Parameter directory: the current location of a directory's own record, or nil if it has
  ///   none.
  package mutating func keep(_ known: KnownEntry, directory: RecordPointer?) {
    guard known.name.withSpan({ follows($0) }) else { return }
    if directory == known.directory {
      page += known.bytes
    } else {
      page += known.bytes(movingDirectoryTo: directory)
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

  /// Writes the record; returns nil if that is not possible.
  consuming func write(tree: TreeReference?) -> RecordPointer? {
    guard let file, !isBroken else { return nil }
    if !places.isEmpty, !page.isEmpty {
      guard let place = file.append(page) else { return nil }
      places.append(place)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(DirectoryLayout.header + page.count)
    DirectoryLayout.append(tree, count: count, isPaged: !places.isEmpty, to: &bytes)
    if places.isEmpty { bytes += page } else { for place in places { place.append(to: &bytes) } }
    return file.append(bytes)
  }
}

/// The offsets of a directory record's fields (docs/state-file.md, "Directory").
enum DirectoryLayout {
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
