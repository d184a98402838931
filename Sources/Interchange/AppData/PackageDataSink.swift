internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Writes an app with its data as an `.ipa` that `PackageDataSource` and programs for `.imazingapp`
/// files read: the bundle in `Payload`, the data in `Container`.
///
/// Without the bundle, `iTunesMetadata.plist` names the app: readers need one of both.
package struct PackageDataSink: ~Copyable, EntrySink {
  private var zip: ZipSink
  private let app: AppIdentity
  private var recorded = SkippedEntries()
  private var isSkipping = false
  /// Whether a file that names the app was written.
  private var namesApp = false

  package var holdsHardLinks: Bool { false }

  /// Creates a package.
  package init(
    to output: @escaping ByteOutput, app: AppIdentity
  ) throws(InterchangeError) {
    zip = try ZipSink(to: output)
    self.app = app
  }

  package var skipped: SkippedEntries {
    var all = recorded
    all.append(zip.skipped)
    return all
  }

  package mutating func add(_ entry: ForeignEntry) throws(InterchangeError) {
    isSkipping = true
    switch member(of: entry) {
    case .member(let path):
      var member = entry
      member.path = path
      isSkipping = false
      if case .file = entry.kind, PackageDataSource.namesApp(path) { namesApp = true }
      try zip.add(member)
    case .nothing: break
    case .unfit(let reason): recorded.append(path: entry.joinedPath, reason: reason)
    }
  }

  package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    if !isSkipping { try zip.write(bytes) }
  }

  package mutating func finish() throws(InterchangeError) {
    if !namesApp { try addMetadata() }
    try zip.finish()
  }

  private mutating func addMetadata() throws(InterchangeError) {
    let list: [UInt8]
    do throws(CodecError) { list = try app.storeMetadata.binary() } catch {
      throw InterchangeError(error, "write", subject: PackageDataSource.metadata)
    }
    try zip.add(
      ForeignEntry(path: [PackageDataSource.metadata], kind: .file(size: UInt64(list.count))))
    try list.span.withUnsafeBytes { (raw) throws(InterchangeError) in try zip.write(raw) }
  }

  /// The destination of an entry.
  private enum Destination {
    case member([ByteString])
    /// A directory above the containers.
    case nothing
    case unfit(String)
  }

  private func member(of entry: ForeignEntry) -> Destination {
    let path = entry.path
    let data = LogicalContainer.data(app.name).prefix.components
    let bundle = LogicalContainer.bundle(app.name).prefix.components
    if path.starts(with: data) {
      let inner = path.dropFirst(data.count)
      if inner.first == PackageDataSource.groups {
        return .unfit("'Container/AppGroups' of a package is for groups")
      }
      return .member([PackageDataSource.container] + inner)
    }
    if path.starts(with: bundle) {
      return Self.member(ofBundle: Array(path.dropFirst(bundle.count)))
    }
    if entry.kind == .directory, path.count <= 2 { return .nothing }
    return .unfit("a package has the bundle and the data container of one app")
  }

  /// Returns the destination of a path in the bundle's container: the bundle itself is in
  /// `Payload`, what is beside it at the top.
  private static func member(ofBundle path: [ByteString]) -> Destination {
    guard let top = path.first else { return .member([PackageDataSource.payload]) }
    if top.hasSuffix(".app") { return .member([PackageDataSource.payload] + path) }
    if top == PackageDataSource.payload || top == PackageDataSource.container {
      return .unfit("'\(top)' of a package has another meaning")
    }
    return .member(path)
  }
}
