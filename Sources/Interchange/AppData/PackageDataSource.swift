internal import Codecs
internal import SandboxModel
package import SystemIO

/// An app with its data in an `.ipa`: a zip archive with `Payload/NAME.app` and, of programs that
/// archive the data, too, `Container` (installation_proxy's `Archive`, which `ideviceinstaller`
/// asks for; `.imazingapp`).
///
/// | path in the archive | logical path |
/// | --- | --- |
/// | `Payload/…` | `apps/ID/bundle/…` |
/// | `Container/AppGroups/GROUP/…` | `groups/GROUP/…` |
/// | `Container/…` | `apps/ID/data/…` |
/// | any other | `apps/ID/bundle/…`, where a device keeps them |
///
/// Of `Payload/NAME` and `NAME` beside `Payload`, which have the same logical path, the first one
/// in the archive is taken, and the members of the other one are recorded as skipped.
package struct PackageDataSource: ~Copyable, EntrySource {
  private var source: ArchiveSource
  /// The app, as the package names it.
  package let app: AppIdentity
  private var recorded = SkippedEntries()
  /// The names in the bundle's container, each with whether it is in `Payload`.
  private var origins: [ByteString: Bool] = [:]

  static let payload: ByteString = "Payload"
  static let container: ByteString = "Container"
  static let groups: ByteString = "AppGroups"
  static let metadata: ByteString = "iTunesMetadata.plist"
  static let action = "read the app's package"
  /// The maximum number of members that are searched for the app's Info.plist.
  private static let memberLimit = 2_000_000

  /// Opens a package in a file, which is read twice.
  ///
  /// - Throws: `unknownFormat` if it is not a zip archive or names no app; `damaged`.
  package init(_ file: ArchiveFile) throws(InterchangeError) {
    try file.requireRereadable(to: Self.action)
    guard let found = try Self.identity(in: file) else {
      throw InterchangeError(
        .unknownFormat, Self.action, subject: file.name,
        reason: "no Info.plist of an app in 'Payload' and no iTunesMetadata.plist names an app",
        hint: "'sandboxctl import zip' imports any zip archive")
    }
    file.seek(to: 0)
    source = try ArchiveSource(file, format: .zip)
    app = found
  }

  /// Returns the identity in the first `Payload/NAME.app/Info.plist`, or otherwise in
  /// `iTunesMetadata.plist`.
  private static func identity(in file: ArchiveFile) throws(InterchangeError) -> AppIdentity? {
    file.seek(to: 0)
    var source = try ArchiveSource(file, format: .zip)
    var (store, count): (AppIdentity?, Int) = (nil, 0)
    while true {
      let entry: ForeignEntry?
      do throws(InterchangeError) { entry = try source.next() } catch {
        // The second pass reads the data before the damage, and reports the damage.
        guard store != nil, error.keepsEarlierEntries else { throw error }
        return store
      }
      guard let entry else { return store }
      count += 1
      guard count <= memberLimit else {
        throw InterchangeError(
          .limitExceeded, action, subject: file.name,
          reason: "it has more than \(memberLimit) members")
      }
      let path = entry.path
      guard namesApp(path) else { continue }
      let app = try list(of: &source).flatMap { AppIdentity(parsing: $0) }
      if path != [metadata], let app { return app }
      if path == [metadata] { store = app }
    }
  }

  /// Whether a member names the app: `Payload/NAME.app/Info.plist`, or `iTunesMetadata.plist`.
  static func namesApp(_ path: [ByteString]) -> Bool {
    path == [metadata]
      || path.count == 3 && path[0] == payload && path[1].hasSuffix(".app")
        && path[2] == "Info.plist"
  }

  /// Returns the content of the current file; nil if it is damaged or too large.
  private static func list(of source: inout ArchiveSource) throws(InterchangeError) -> [UInt8]? {
    var (bytes, buffer): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 1 << 16))
    do throws(InterchangeError) {
      while bytes.count <= AppIdentity.listLimit {
        var span = buffer.mutableSpan
        let count = try span.withUnsafeMutableBytes { (raw) throws(InterchangeError) in
          try source.read(into: raw)
        }
        if count == 0 { return bytes }
        bytes += buffer.prefix(count)
      }
    } catch {
      guard error.kind == .damagedEntry else { throw error }
    }
    return nil
  }

  package var madeAt: Timestamp? { source.madeAt }
  package var keepsNames: Bool { source.keepsNames }
  package var owners: OwnerNames { source.owners }
  package var apps: [ForeignApp] { [app.foreignApp] }

  package var skipped: SkippedEntries {
    var all = recorded
    all.append(source.skipped)
    return all
  }

  package mutating func next() throws(InterchangeError) -> ForeignEntry? {
    while var entry = try source.next() {
      guard let path = logicalPath(of: entry.path) else {
        recordUnlessAboveGroups(entry)
        continue
      }
      if let fault = PathComponents.fault(in: path) {
        recorded.append(path: entry.joinedPath, reason: fault)
        continue
      }
      if let conflict = conflict(of: entry.path) {
        recorded.append(path: entry.joinedPath, reason: conflict)
        continue
      }
      entry.path = path
      // A zip archive has none; a target that no container has would be missing.
      if case .hardLink(let target) = entry.kind {
        entry.kind = .hardLink(to: logicalPath(of: target) ?? target)
      }
      return entry
    }
    return nil
  }

  package mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    try source.read(into: buffer)
  }

  package mutating func skipHole() throws(InterchangeError) -> UInt64 { try source.skipHole() }

  /// Records a member without a location, unless it is the root or the directory of the groups.
  private mutating func recordUnlessAboveGroups(_ entry: ForeignEntry) {
    if entry.path.isEmpty || entry.kind == .directory && entry.path.count == 2 { return }
    recorded.append(path: entry.joinedPath, reason: "it is in no directory of a valid group")
  }

  /// Returns why a member of the bundle's container cannot be taken, or nil: a name that `Payload`
  /// and the top of the archive both have would be one path, at which only one entry could be
  /// stored.
  private mutating func conflict(of path: [ByteString]) -> String? {
    guard let top = path.first, top != Self.container else { return nil }
    let isInPayload = top == Self.payload
    guard let name = isInPayload ? path.dropFirst().first : top else { return nil }
    guard let other = origins.updateValue(isInPayload, forKey: name), other != isInPayload else {
      return nil
    }
    origins[name] = other
    return isInPayload
      ? "'\(name)' beside 'Payload' has the same place, and is imported"
      : "'Payload/\(name)' has the same place, and is imported"
  }

  /// Returns the logical path of a member; nil for the root, for the directory of the groups, which
  /// is not a container, and for members in no valid group.
  private func logicalPath(of path: [ByteString]) -> [ByteString]? {
    guard let top = path.first else { return nil }
    let bundle = LogicalContainer.bundle(app.name).prefix.components
    if top == Self.payload { return bundle + path.dropFirst() }
    guard top == Self.container else { return bundle + path }
    guard path.count > 1, path[1] == Self.groups else {
      return LogicalContainer.data(app.name).prefix.components + path.dropFirst()
    }
    guard path.count > 2 else { return nil }
    let group = LogicalName(path[2])
    guard BundleIdentifier.fault(of: group.identifier) == nil else { return nil }
    return LogicalContainer.group(group).prefix.components + path.dropFirst(3)
  }
}
