package import AppPackages
internal import Codecs
internal import DeviceDiscovery
internal import SandboxModel
package import SystemIO

/// The tables of the macOS apps whose bundles have a container-migration.plist.
///
/// macOS carries out such a list when the app first gets a container (App Sandbox Design Guide,
/// Migrating an App to a Sandbox). Here it is a table like the others, so that the data of a home
/// directory of another Mac, or from before the sandbox, can be copied into a container.
package struct BundleMigrations: Sendable {
  /// A table for each app with a usable list, in the order of their bundles.
  package private(set) var tables: [MigrationTable] = []
  /// The versions of the apps in bundles, by identifier.
  package private(set) var versions: [ByteString: AppVersion] = [:]
  /// The lists that could not be used, by path.
  package private(set) var problems: [PathRemark] = []
  /// The apps of these lists.
  package private(set) var refused: Set<ByteString> = []

  /// The maximum size of an Info.plist, and of a list, in bytes.
  private static let maximumSize = 8 << 20
  private static let list: ByteString = "container-migration.plist"

  /// Reads the bundles in the applications of a home directory and of its system (`Users/NAME`).
  /// Links are not followed; what cannot be read has no table.
  ///
  /// - Parameter home: The home directory, an absolute path without links.
  package init(home: ByteString) {
    let system = DeviceFinder().system(ofHome: home, below: "Users")
    // A bundle in the home directory takes precedence.
    for above in [home, system].compactMap(\.self) {
      guard let directory = try? Directory.open(resolved: above.appending("Applications")) else {
        continue
      }
      // Sorted, so that of two bundles of one app always the same one counts.
      for name in ((try? directory.names()) ?? []).sorted() where name.hasSuffix(".app") {
        read(name, in: directory)
      }
    }
  }

  private mutating func read(_ name: ByteString, in applications: borrowing Directory) {
    guard let bundle = try? applications.directory(name),
      let contents = try? bundle.directory(BundleShape.contentsDirectory),
      let info = Self.bytes(of: "Info.plist", in: contents).flatMap(Self.parsed),
      let identifier = Self.text("CFBundleIdentifier", of: info).flatMap({ BundleIdentifier($0) }),
      versions[identifier.bytes] == nil
    else { return }
    versions[identifier.bytes] = AppVersion(
      version: Self.text("CFBundleShortVersionString", of: info),
      build: Self.text("CFBundleVersion", of: info))
    guard let resources = try? contents.directory("Resources"),
      let bytes = Self.bytes(of: Self.list, in: resources)
    else { return }
    let path = resources.path.appending(Self.list)
    do throws(ModelError) {
      let migration = try ContainerMigration(reading: bytes, for: identifier)
      let title = Self.text("CFBundleDisplayName", of: info) ?? Self.text("CFBundleName", of: info)
      tables.append(
        MigrationTable(
          migration, of: identifier.bytes, title: title?.utf8, file: path.description))
    } catch {
      problems.append(PathRemark(path: path, remark: error.reason))
      refused.insert(identifier.bytes)
    }
  }

  private static func bytes(of name: ByteString, in directory: borrowing Directory) -> [UInt8]? {
    guard let file = try? directory.fileUntouched(name) else { return nil }
    return try? file.readAll(limit: maximumSize)
  }

  private static func parsed(_ bytes: [UInt8]) -> PropertyList? {
    try? PropertyList(reading: bytes, limits: .init(bytes: maximumSize))
  }

  private static func text(_ key: String, of list: PropertyList) -> ByteString? {
    list[key]?.stringValue.flatMap { $0.isEmpty ? nil : ByteString($0) }
  }
}
