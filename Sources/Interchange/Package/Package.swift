// Apps as they come: a `.app` directory, an `.ipa`, or a zip that holds a `.app`.
//
// Opening looks, and writes nothing: names, links, sizes and the archive's own directory are checked,
// the property lists and entitlements that say what app it is are read. What would not be safe to
// unpack is refused then. `entries()` gives what is to be unpacked; each file is held against its
// checksum, or against what stood in the directory when it was opened, while it is read.
//
// Not checked: signatures, and that the bytes of files that were not read are whole. Not taken over:
// owners, extended attributes, set-user-id bits, and what lies beside the bundle in an .ipa.
public import SandboxModel
public import SystemIO

/// A package of an app that was opened.
public struct Package: ~Copyable {
  /// What it is.
  public let app: AppPackage
  let table: PackageTable
  let content: Content

  /// Where its bytes are.
  enum Content {
    case folder(BundleDirectory)
    case archive(ZipFile)
  }

  /// A directory that stays open.
  final class BundleDirectory: Sendable {
    let directory: Directory
    let statuses: [FileStatus]

    init(_ directory: consuming Directory, _ statuses: [FileStatus]) {
      self.directory = directory
      self.statuses = statuses
    }
  }

  /// Opens the package at a path, which may lead through links.
  ///
  /// - Throws: `package` for what is damaged or no package, `unsafePackage` for what would not be
  ///   safe to unpack, `system` for a failed call.
  public init(
    opening path: ByteString, limits: PackageLimits = PackageLimits()
  ) throws(ModelError) {
    let fault = PackageFault(path: path)
    let (parent, name) = try Self.find(path)
    let place = try calling { () throws(SystemError) in try Directory.open(path: parent) }
    switch try calling({ () throws(SystemError) in try place.status(name).kind }) {
    case .directory:
      self = try Self.directory(place, name, limits, fault)
    case .file:
      self = try Self.archive(place, name, limits, fault)
    default:
      throw fault.damaged(
        "it is neither a directory nor a file", hint: "give a .app directory or an .ipa")
    }
  }

  /// The entries, from the first one on; may be asked for several times.
  public func entries() throws(ModelError) -> PackageEntries {
    switch content {
    case .folder(let bundle):
      PackageEntries(
        table.rows,
        directory: try DirectoryReader(bundle.directory, bundle.statuses, fault: table.fault))
    case .archive(let zip):
      PackageEntries(table.rows, archive: try ArchiveReader(zip))
    }
  }

  init(_ app: AppPackage, _ table: PackageTable, _ content: Content) {
    self.app = app
    self.table = table
    self.content = content
  }

  /// The path of the directory that a package lies in, and its name there, with links followed.
  private static func find(
    _ path: ByteString
  ) throws(ModelError) -> (parent: ByteString, name: ByteString) {
    let real = try calling { () throws(SystemError) in try Host.realPath(path) }
    guard let name = real.lastComponent else {
      throw ModelError(
        .package, PackageFault.attempt, on: path, "it is the root of the file system",
        hint: "give a .app directory or an .ipa")
    }
    let parent = PackageName.parent(of: real)
    return (parent.isEmpty ? "/" : parent, name)
  }
}
