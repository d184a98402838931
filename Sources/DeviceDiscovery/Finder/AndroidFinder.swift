internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Finds the data of Android apps in `/data/data` of a rooted device, an emulator or a copy: one
/// directory for each package.
///
/// The installed packages are those of `system/packages.list` beside it. Data of other users and
/// data that is available before the first unlock (`user_de`) is reported and not used.
struct AndroidFinder {
  /// A package in `packages.list`.
  struct Package: Equatable {
    let name: ByteString
    /// The version code, if the file contains it (Android 10 and later).
    let versionCode: ByteString?
  }

  /// The names from the root of a device's file system to the apps' data.
  static let directories: [ByteString] = ["data", "data"]
  /// The names of directories beside `data` whose content is not supported, with the reason.
  private static let unsupported: [(name: ByteString, reason: String)] = [
    ("user_de", "data that is available before the first unlock is not supported"),
    ("media", "shared storage belongs to no single app and is not supported"),
  ]
  /// The maximum number of fields of a line that are examined.
  private static let fieldLimit = 64

  private(set) var drafts: [ContainerDraft] = []
  /// The installed packages by name, or nil if they are unknown.
  private(set) var packages: [ByteString: Package]?

  /// Scans the directory of all apps' data.
  mutating func searchData(in apps: borrowing Directory, _ survey: inout Survey) {
    for name in survey.names(in: apps, as: "") where !OwnNames.has(name) {
      if let draft = survey.container(.data, name, of: name, in: apps, as: name) {
        drafts.append(draft)
      }
    }
  }

  /// Reads the installed packages from the directory above that of all apps' data, and reports the
  /// other data in it.
  mutating func searchSystem(in data: borrowing Directory, _ survey: inout Survey) {
    if let bytes = survey.text("packages.list", ["system"], of: data, as: data.path) {
      packages = Dictionary(
        Self.packages(in: bytes).map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }
    for (name, reason) in Self.unsupported where (try? data.statusIfPresent(name)) != .some(nil) {
      survey.record(.unsupported, at: data.path.appending(name), because: reason)
    }
    guard let users = survey.inner(["user"], of: data, as: data.path) else { return }
    for name in survey.names(in: users, as: users.path) where name != "0" {
      survey.record(
        .unsupported, at: users.path.appending(name), because: "it is the data of another user")
    }
  }

  /// Returns the packages in a `packages.list`: one a line, with the fields name, user ID, whether
  /// it is debuggable, data directory, label, groups, whether the shell may profile it, version
  /// code (AOSP, system/core/libpackagelistparser). Lines without a valid name are ignored.
  static func packages(in bytes: [UInt8]) -> [Package] {
    bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let fields = line.split(separator: UInt8(ascii: " "), maxSplits: fieldLimit)
      guard let name = fields.first.flatMap({ BundleIdentifier(ByteString($0)) }), fields.count > 3
      else { return nil }
      let code = fields.count > 7 ? ByteString(fields[7].trimmed) : nil
      let isNumber = code?.bytes.allSatisfy { (0x30...0x39).contains($0) } ?? false
      return Package(name: name.bytes, versionCode: isNumber ? code : nil)
    }
  }

  /// Returns the apps with data, and the installed ones among the packages. If these are unknown,
  /// each app counts as installed.
  func apps() -> [App] {
    let listed = packages.map { Set($0.keys.compactMap { BundleIdentifier($0) }) } ?? []
    return listed.union(drafts.compactMap(\.identifier)).sorted().map { identifier in
      App(
        identifier, isInstalled: packages == nil || listed.contains(identifier),
        build: packages?[identifier.bytes]?.versionCode)
    }
  }
}

// MARK: - The device

extension AndroidFinder {
  /// Scans the directory of all apps' data, which is the root.
  static func device(in apps: borrowing Directory, for asked: DeviceFinder) -> Device {
    device(in: apps, Survey(root: apps.path), for: asked)
  }

  /// Scans the directory of all apps' data at a path below a directory.
  static func device(
    in directory: borrowing Directory, at path: ByteString, for asked: DeviceFinder
  ) throws -> Device {
    let named = directory.path.appending(path)
    let apps = try Directory.open(inHome: named)
    let survey = Survey(of: apps, at: named)
    return device(in: apps, survey, for: asked)
  }

  private static func device(
    in apps: borrowing Directory, _ start: Survey, for asked: DeviceFinder
  ) -> Device {
    var survey = start
    var finder = AndroidFinder()
    finder.searchData(in: apps, &survey)
    if apps.path.lastComponent == "data", let data = survey.outside(apps.path.parent) {
      finder.searchSystem(in: data, &survey)
    }
    return Device(
      root: apps.path, layout: .android, facts: Device.Facts(platform: "Android"),
      identity: asked.identity(.android, apps.path), apps: finder.apps(),
      containers: LogicalNaming.containers(of: finder.drafts, &survey),
      findings: survey.findings.sorted())
  }

  /// Whether a directory contains those of packages: directories whose names contain a dot, with
  /// the two subdirectories that the system creates in each (AOSP, frameworks/native/cmds/installd,
  /// create_app_data).
  static func isPackageDirectory(_ directory: borrowing Directory) -> Bool {
    for name in (try? directory.names()) ?? [] {
      guard name.bytes.contains(UInt8(ascii: ".")), name.bytes.first != UInt8(ascii: "."),
        let package = try? directory.directory(name),
        (try? package.status("cache"))?.kind == .directory,
        (try? package.status("code_cache"))?.kind == .directory
      else { continue }
      return true
    }
    return false
  }
}
