internal import SandboxModel
package import SystemIO

/// The paths of an Android backup and their logical paths.
///
/// | in the backup, below `apps/<package>/` | logical path |
/// | --- | --- |
/// | `r/…` (the data directory) | `apps/<package>/data/…` |
/// | `f/…` | `apps/<package>/data/files/…` |
/// | `db/…` | `apps/<package>/data/databases/…` |
/// | `sp/…` | `apps/<package>/data/shared_prefs/…` |
/// | `c/…` | `apps/<package>/data/cache/…` |
/// | `nb/…` | `apps/<package>/data/no_backup/…` |
/// | `_manifest`, `_meta` | `apps/<package>/bundle/_manifest`, `…/_meta` |
/// | `a/…` (the package's files) | `apps/<package>/bundle/…` |
/// | `obb/…` (expansion files) | `apps/<package>/bundle/obb/…` |
/// | others | `folders/android-backup/<package>/<token>/…` |
///
/// The others are the trees outside the data directory: `ef` (the app's files on external storage),
/// `d_r`, `d_f`, `d_db`, `d_sp`, `d_c`, `d_nb` (storage that is available before the first unlock)
/// and `k` (key-value data). `shared/<volume>/…`, the files of all apps, is
/// `folders/android-shared/<volume>/…`.
///
/// Source: AOSP, `FullBackup.java` (`…_TREE_TOKEN`), `TarBackupReader.java`.
package enum AndroidBackupPath {
  static let manifest: ByteString = "_manifest"
  static let metadata: ByteString = "_meta"
  private static let apps: ByteString = "apps"
  private static let shared: ByteString = "shared"
  private static let folders: ByteString = "folders"
  private static let data: ByteString = "data"
  private static let bundle: ByteString = "bundle"
  private static let others: ByteString = "android-backup"
  private static let sharedFolder: ByteString = "android-shared"

  /// The tokens of trees in the data directory with the names of their directories.
  private static let dataTrees: [(token: ByteString, directory: ByteString)] = [
    ("f", "files"), ("db", "databases"), ("sp", "shared_prefs"), ("c", "cache"),
    ("nb", "no_backup"),
  ]
  private static let root: ByteString = "r"

  /// The trees that Auto Backup stores, by token, with their storage and directory.
  static let autoBackupTrees: [ByteString: AutoBackupLocation] = {
    var trees: [ByteString: AutoBackupLocation] = [
      root: AutoBackupLocation(.credentialProtected, []),
      "d_r": AutoBackupLocation(.deviceProtected, []),
      "ef": AutoBackupLocation(AutoBackupLocation.Storage.external, []),
    ]
    for (token, directory) in dataTrees {
      trees[token] = AutoBackupLocation(.credentialProtected, [directory])
      trees[deviceMark.concatenating(token)] = AutoBackupLocation(.deviceProtected, [directory])
    }
    return trees
  }()

  /// The beginning of the tokens of storage that is available before the first unlock.
  private static let deviceMark: ByteString = "d_"
  private static let package: ByteString = "a"
  private static let expansion: ByteString = "obb"

  /// Returns the logical path of a path in a backup, or nil for a directory that exists only in the
  /// backup.
  ///
  /// - Throws: `PathFault` for a path that no Android backup has.
  package static func logical(_ path: [ByteString]) throws(PathFault) -> [ByteString]? {
    switch path.first {
    case nil: return nil
    case shared: return path.count < 2 ? nil : [folders, sharedFolder] + path.dropFirst()
    case apps:
      guard path.count > 1 else { return nil }
      return logical(of: path[1], path.dropFirst(2))
    default: throw PathFault(reason: "it is in neither 'apps' nor 'shared'")
    }
  }

  private static func logical(
    of package: ByteString, _ rest: ArraySlice<ByteString>
  ) -> [ByteString]? {
    guard let token = rest.first else { return nil }
    let (name, inner) = (LogicalName(package).component, rest.dropFirst())
    if token == root { return [apps, name, data] + inner }
    if let tree = dataTrees.first(where: { $0.token == token }) {
      return [apps, name, data, tree.directory] + inner
    }
    switch token {
    case manifest, metadata: return [apps, name, bundle, token] + inner
    case Self.package: return [apps, name, bundle] + inner
    case expansion: return [apps, name, bundle, expansion] + inner
    default: return [folders, others, name, token] + inner
    }
  }

  /// A path in a backup.
  package struct Stored: Hashable, Sendable {
    /// The package; nil for `shared`.
    package var package: ByteString?
    /// The token of the tree, or the volume of `shared`; empty for `_manifest` and `_meta`.
    package var token: ByteString
    /// The path in the tree; empty for its root, which a backup does not store.
    package var inner: [ByteString]

    /// `apps/<package>/<token>` or `shared/<volume>`.
    var prefix: ByteString {
      guard let package else {
        return AndroidBackupPath.shared.appending(token)
      }
      return AndroidBackupPath.apps.appending(package).appending(token)
    }
  }

  /// Returns the path in a backup of a logical path; nil for a directory above the trees.
  ///
  /// - Throws: `PathFault` for a logical path that an Android backup cannot have.
  package static func stored(_ path: [ByteString]) throws(PathFault) -> Stored? {
    switch path.first {
    case nil: return nil
    case folders: return try storedFolder(path.dropFirst())
    case apps: return try storedApp(path.dropFirst())
    default: throw PathFault(reason: "an Android backup has no '\(path[0])'")
    }
  }

  private static func storedFolder(
    _ path: ArraySlice<ByteString>
  ) throws(PathFault) -> Stored? {
    let rest = path.dropFirst()
    switch path.first {
    case nil: return nil
    case sharedFolder:
      guard let volume = rest.first else { return nil }
      return Stored(package: nil, token: volume, inner: Array(rest.dropFirst()))
    case others:
      guard rest.count > 1, let name = rest.first, let token = rest.dropFirst().first else {
        return nil
      }
      return Stored(
        package: try package(named: name), token: token, inner: Array(rest.dropFirst(2)))
    default: throw PathFault(reason: "an Android backup has apps, and no other directories")
    }
  }

  private static func storedApp(_ path: ArraySlice<ByteString>) throws(PathFault) -> Stored? {
    guard path.count > 1, let name = path.first else { return nil }
    let package = try package(named: name)
    let rest = Array(path.dropFirst(2))
    switch path.dropFirst().first {
    case data: return storedData(of: package, rest)
    case bundle: return storedBundle(of: package, rest)
    default: throw PathFault(reason: "an Android backup has only an app's 'data' and 'bundle'")
    }
  }

  private static func storedData(of package: ByteString, _ path: [ByteString]) -> Stored? {
    guard let first = path.first else { return nil }
    if let tree = dataTrees.first(where: { $0.directory == first }) {
      return Stored(package: package, token: tree.token, inner: Array(path.dropFirst()))
    }
    return Stored(package: package, token: root, inner: path)
  }

  private static func storedBundle(of package: ByteString, _ path: [ByteString]) -> Stored? {
    guard let first = path.first else { return nil }
    if path.count == 1, first == manifest || first == metadata {
      return Stored(package: package, token: "", inner: path)
    }
    if first == expansion {
      return Stored(package: package, token: expansion, inner: Array(path.dropFirst()))
    }
    return Stored(package: package, token: Self.package, inner: path)
  }

  private static func package(named component: ByteString) throws(PathFault) -> ByteString {
    guard let name = LogicalName(component: component), name.instance == nil,
      name.identifier.nameFault == nil
    else { throw PathFault(reason: "'\(component)' is not the name of an Android package") }
    return name.identifier
  }
}
