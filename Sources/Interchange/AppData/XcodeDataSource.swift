internal import Codecs
internal import SandboxModel
package import SystemIO

/// The data container of an app as Xcode downloads it: a directory `NAME.xcappdata` with `AppData`
/// and `AppDataInfo.plist`. Its entries are those of `apps/ID/data`.
///
/// No link is followed and no mount is entered; an entry that cannot be read is recorded in
/// `skipped`.
package struct XcodeDataSource: ~Copyable, EntrySource {
  /// The path for messages.
  package let path: ByteString
  /// The app whose data it is.
  package let app: AppIdentity
  /// The time of the last change to the directory.
  private let modified: Timestamp
  private var cursor: DirectoryCursor
  private var remaining = RemainingPaths()
  /// The path of the first name of each file with several names.
  private var firstNames: [FileIdentity: [ByteString]] = [:]
  /// Whether the root was returned.
  private var hasBegun = false
  private var content: Content?
  /// The bytes that were read last.
  private var portion: [UInt8] = []
  package private(set) var skipped = SkippedEntries()

  static let data: ByteString = "AppData"
  static let list: ByteString = "AppDataInfo.plist"
  private static let metadata: ByteString = ".com.apple.mobile_container_manager.metadata.plist"
  static let action = "read the app's data"

  private struct Content: ~Copyable {
    let file: Descriptor
    let path: ByteString
    let status: FileStatus
    /// The holes that are not before the offset, the last one first.
    var holes: [Extent]
    var offset: UInt64 = 0
  }

  /// Opens a directory.
  ///
  /// - Throws: `unknownFormat` if it has no `AppData`, or if nothing in it names the app; `system`.
  package init(path: ByteString) throws(InterchangeError) {
    let opened = try Self.open(path)
    guard let found = opened.app else {
      throw InterchangeError(
        .unknownFormat, Self.action, subject: opened.path,
        reason: "neither AppDataInfo.plist nor the metadata in AppData names its app",
        hint: "write AppDataInfo.plist with the key CFBundleIdentifier")
    }
    app = found
    (self.path, modified, skipped) = (opened.path, opened.modified, opened.others)
    remaining.append(opened.names, in: [])
    cursor = DirectoryCursor(root: opened.data)
  }

  /// The data and what is beside it.
  private struct Opened: ~Copyable {
    let path: ByteString
    let modified: Timestamp
    let app: AppIdentity?
    let data: Directory
    /// The names in the data.
    let names: [ByteString]
    let others: SkippedEntries
  }

  private static func open(_ path: ByteString) throws(InterchangeError) -> Opened {
    do throws(SystemError) {
      let path = try Host.realPath(path)
      let top = try Directory.open(resolved: path)
      let names = try top.names().sorted()
      if names.contains(data) {
        let directory = try top.directory(data)
        let lists = [try bytes(of: list, in: top), try bytes(of: metadata, in: directory)]
        let inner = try directory.names()
        var others = SkippedEntries()
        for name in names where name != data && name != list {
          others.append(path: name, reason: "it is not part of an app's data of Xcode")
        }
        return Opened(
          path: path, modified: try top.status().modified,
          app: lists.lazy.compactMap { $0.flatMap { AppIdentity(parsing: $0) } }.first,
          data: directory, names: inner, others: others)
      }
    } catch { throw InterchangeError(error, action, subject: path) }
    throw InterchangeError(
      .unknownFormat, action, subject: path, reason: "it has no directory AppData",
      hint: "name the directory that Xcode downloaded, NAME.xcappdata")
  }

  /// Returns the bytes of a list, or nil if it is absent, not a file or too large.
  private static func bytes(
    of name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> [UInt8]? {
    guard try directory.statusIfPresent(name)?.kind == .file else { return nil }
    return try directory.file(name).readAll(limit: AppIdentity.listLimit)
  }

  package var madeAt: Timestamp? { modified }

  package var apps: [ForeignApp] { [app.foreignApp] }

  package mutating func next() throws(InterchangeError) -> ForeignEntry? {
    content = nil
    if !hasBegun {
      hasBegun = true
      do throws(SystemError) {
        return try entry([], status: cursor.root.status(), attributes: cursor.root.attributes.all())
      } catch { throw InterchangeError(error, Self.action, subject: path) }
    }
    while let path = remaining.next(), let name = path.last {
      do throws(SystemError) {
        if let entry = try entry(name, at: path) { return entry }
      } catch {
        skipped.append(path: Self.shown(path), reason: error.reason)
      }
    }
    return nil
  }

  package mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    guard let offset = content?.offset else { return 0 }
    let path = content?.path ?? ""
    var count = min(buffer.count, 1 << 20)
    if let hole = content?.holes.last, hole.offset > offset {
      count = Int(min(UInt64(count), hole.offset - offset))
    }
    var isSame = true
    do throws(SystemError) {
      try content?.file.read(count: count, at: offset, into: &portion)
      if portion.isEmpty { isSame = try isUnchanged() }
    } catch {
      throw InterchangeError(
        .damagedEntry, Self.action, subject: path, reason: error.reason, cause: error)
    }
    guard isSame else {
      throw InterchangeError(
        .damagedEntry, Self.action, subject: path, reason: InterchangeError.changedReason)
    }
    buffer.copyBytes(from: portion)
    content?.offset += UInt64(portion.count)
    return portion.count
  }

  package mutating func skipHole() throws(InterchangeError) -> UInt64 {
    guard let offset = content?.offset else { return 0 }
    while let hole = content?.holes.last, hole.offset <= offset {
      content?.holes.removeLast()
      let end = hole.offset + hole.length
      guard end > offset else { continue }
      content?.offset = end
      return end - offset
    }
    return 0
  }

  /// Whether the file has the size and time that it had when it was opened.
  private mutating func isUnchanged() throws(SystemError) -> Bool {
    guard let now = try content?.file.status(), let size = content?.status.size,
      let modified = content?.status.modified
    else { return true }
    return now.size == size && now.modified == modified
  }
}

// MARK: - Entries

extension XcodeDataSource {
  private static func shown(_ path: [ByteString]) -> ByteString {
    data.appending(ByteString(joining: path))
  }

  /// Returns the entry of a child of a directory, or nil after recording why it is not taken.
  private mutating func entry(
    _ name: ByteString, at path: [ByteString]
  ) throws(SystemError) -> ForeignEntry? {
    try cursor.move(to: Array(path.dropLast()))
    let (status, attributes, target) = try cursor.withDirectory { (directory) throws(SystemError) in
      let status = try directory.status(name)
      let target = status.kind == .symlink ? try directory.target(of: name) : nil
      return (status, try directory.attributes(of: name).all(), target)
    }
    if let fault = fault(of: status, at: path) {
      skipped.append(path: Self.shown(path), reason: fault)
      return nil
    }
    var entry = entry(path, status: status, attributes: attributes)
    switch status.kind {
    case .directory:
      try cursor.descend(name, status.identity)
      let names = try cursor.withDirectory { (directory) throws(SystemError) in
        try directory.names()
      }
      remaining.append(names, in: path)
    case .symlink: entry.kind = .symlink(target: target ?? "")
    case .file:
      if status.links > 1, let first = firstNames[status.identity] {
        entry.kind = .hardLink(to: first)
        return entry
      }
      guard try open(name, status, at: path) else { return nil }
      if status.links > 1 { firstNames[status.identity] = entry.path }
    default: break
    }
    return entry
  }

  /// Returns the reason why an entry is not taken, or nil.
  private func fault(of status: FileStatus, at path: [ByteString]) -> String? {
    if status.isMountPoint { return "another file system is mounted there" }
    switch status.kind {
    case .socket, .characterDevice, .blockDevice: return "it is a socket or a device"
    case .file, .directory, .symlink, .fifo: break
    }
    return PathComponents.fault(in: prefix + path)
  }

  /// Opens the content of a file. Returns false after recording that the file was replaced.
  private mutating func open(
    _ name: ByteString, _ status: FileStatus, at path: [ByteString]
  ) throws(SystemError) -> Bool {
    let file = try cursor.withDirectory { (directory) throws(SystemError) in
      try directory.fileUntouched(name)
    }
    let opened = try file.status()
    guard opened.identity == status.identity else {
      skipped.append(path: Self.shown(path), reason: "it was replaced while it was read")
      return false
    }
    let isSparse = opened.allocated < opened.size
    let holes = isSparse ? try file.extents(size: opened.size).filter(\.isHole) : []
    content = Content(
      file: file, path: Self.shown(path), status: opened, holes: holes.reversed())
    return true
  }

  private var prefix: [ByteString] { LogicalContainer.data(app.name).prefix.components }

  private func entry(
    _ path: [ByteString], status: FileStatus, attributes: [(name: ByteString, value: [UInt8])]
  ) -> ForeignEntry {
    let kind: ForeignEntry.Kind =
      switch status.kind {
      case .file: .file(size: status.size)
      case .fifo: .fifo
      default: .directory
      }
    return ForeignEntry(
      path: prefix + path, kind: kind, permissions: status.permissions, owner: status.user,
      group: status.group, modified: status.modified,
      attributes: attributes.filter { Self.isOfUser($0.name) }
        .map { ForeignEntry.Attribute(name: $0.name, value: $0.value) })
  }

  /// Whether an attribute is the user's or an access control list. Others are the host's, such as
  /// SELinux's labels.
  private static func isOfUser(_ name: ByteString) -> Bool {
    name.bytes.starts(with: "user.".utf8) || name.bytes.starts(with: "system.posix_acl_".utf8)
  }
}

/// The paths of a tree that are still to be read: a directory before its entries, and these in the
/// order of their names.
struct RemainingPaths {
  /// The directories with remaining names, the outermost first.
  private var levels: [(path: [ByteString], names: [ByteString])] = []

  /// Adds the names in a directory, which come next.
  mutating func append(_ names: [ByteString], in path: [ByteString]) {
    levels.append((path, names.sorted(by: >)))
  }

  /// Removes the next path and returns it; nil after the last one.
  mutating func next() -> [ByteString]? {
    while let last = levels.indices.last {
      // In place: with a copy of the level, each name would cost a copy of all names.
      if let name = levels[last].names.popLast() { return levels[last].path + [name] }
      levels.removeLast()
    }
    return nil
  }
}
