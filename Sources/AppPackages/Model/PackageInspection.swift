// The information about an app in its package: its Info.plist, those of its extensions, and
// entitlements from all sources. The caller adds the files that `wants` selects, then examines the
// executables that `programs()` returns, then requests the description. This type opens no files,
// and its memory use is bounded.
internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

/// Collects the information about the app in a package.
struct PackageInspection {
  /// The maximum total size in bytes of the files that `wants` selects; real packages have less
  /// than one megabyte.
  static let limit = 64 << 20

  private let origin: AppPackage.Origin
  /// The bundle's directory, `Example.app`.
  private let bundle: ByteString
  private var survey: Survey
  private var files: [ByteString: [UInt8]] = [:]
  private var retainedBytes = 0
  /// The bundles: the app's first, then its extensions' sorted by path.
  private var parts: [Part] = []

  /// A bundle in the package: that of the app or of an extension.
  private struct Part {
    let bundle: ByteString
    let shape: BundleShape
    let info: BundleInfo
    var facts: MachO.Facts?
    /// The directory of its executable.
    var programs: ByteString {
      shape == .contents
        ? bundle.appending(BundleShape.contentsDirectory).appending(PackagePaths.programs)
        : bundle
    }
    /// The path of its executable, or nil if it names none.
    var program: ByteString? { info.executable.map { programs.appending($0) } }
  }

  /// Creates an inspection; `bundle` is the bundle's directory, `Example.app`.
  init(of origin: AppPackage.Origin, bundle: ByteString) {
    self.origin = origin
    self.bundle = bundle
    survey = Survey(root: origin.path)
  }

  /// Whether the inspection needs the content of this file.
  func wants(_ path: ByteString) -> Bool { PackagePaths.describesPackage(path) }

  /// The maximum size of such a file in bytes; larger ones are reported with `skip`.
  static var fileLimit: Int { Survey.propertyListLimit }

  /// Adds the content of a file that `wants` selected.
  ///
  /// - Throws: `package` if these files together exceed `limit` bytes.
  mutating func add(_ path: ByteString, _ bytes: [UInt8]) throws(ModelError) {
    retainedBytes += bytes.count
    guard retainedBytes <= Self.limit else {
      throw fault("the files that describe it have more than \(Self.limit) bytes in total")
    }
    files[path] = bytes
  }

  /// Reports a file that `wants` selected but that is too large to read.
  ///
  /// - Throws: `package` if the file is the app's Info.plist.
  mutating func skip(_ path: ByteString, size: UInt64) throws(ModelError) {
    let reason = "it has \(size) bytes, more than the limit of \(Self.fileLimit)"
    survey.warn(.unusableFile, at: path, because: reason)
    let bundlePath = PackagePaths.bundlePath(of: path)
    if bundlePath.bundle == bundle, bundlePath.inner == [PackagePaths.info] {
      throw fault("its '\(path)' cannot be used: \(reason)")
    }
  }

  /// Evaluates the files and returns the paths of the executables to examine for entitlements.
  ///
  /// - Throws: `package` if the app's Info.plist is missing or invalid.
  mutating func programs() throws(ModelError) -> [ByteString] {
    parts = [try app()]
    for path in files.keys.sorted() {
      let bundlePath = PackagePaths.bundlePath(of: path)
      guard bundlePath.inner == [PackagePaths.info], bundlePath.bundle != bundle,
        let info = info(at: path)
      else { continue }
      parts.append(Part(bundle: bundlePath.bundle, shape: bundlePath.shape, info: info))
    }
    return parts.compactMap { part in
      guard let name = part.info.executable, let path = part.program else { return nil }
      return survey.isProgramName(name, as: path) ? path : nil
    }
  }

  /// Reads the entitlements of an executable that `programs()` returned.
  ///
  /// - Throws: The errors of the source.
  mutating func examine<Source: ByteSource & ~Copyable>(
    _ program: ByteString, _ source: borrowing Source
  ) throws(SystemError) {
    let facts = try MachO.facts(of: source)
    for index in parts.indices where parts[index].program == program { parts[index].facts = facts }
    if facts.isEncrypted {
      survey.record(
        .encrypted, at: program,
        because:
          "the executable is encrypted (FairPlay): it runs only on devices with the buyer's key")
    }
  }

  private mutating func app() throws(ModelError) -> Part {
    let flat = bundle.appending(PackagePaths.info)
    let contents = bundle.appending(BundleShape.contentsDirectory).appending(PackagePaths.info)
    let shape: BundleShape = files[flat] == nil && files[contents] != nil ? .contents : .flat
    let path = shape == .flat ? flat : contents
    guard files[path] != nil else {
      throw fault(
        "its bundle '\(bundle)' has no Info.plist",
        hint: "specify a complete .app directory, such as one from DerivedData or an .ipa")
    }
    guard let info = info(at: path) else {
      throw fault(
        "its '\(path)' cannot be used: \(survey.findings.last?.reason ?? "it is damaged")")
    }
    return Part(bundle: bundle, shape: shape, info: info)
  }

  private mutating func info(at path: ByteString) -> BundleInfo? {
    guard let bytes = files[path], let list = survey.dictionary(bytes, as: path) else { return nil }
    return survey.bundleInfo(of: list, as: path)
  }

  private func fault(_ reason: String, hint: String? = nil) -> ModelError {
    ModelError(.package, "open the package", on: origin.path, reason: reason, hint: hint)
  }
}

// MARK: - Description

extension PackageInspection {
  /// Returns the description of the package from the files added.
  ///
  /// - Throws: `package` if the app or an extension has no valid identifier.
  consuming func description(size: AppPackage.Size) throws(ModelError) -> AppPackage {
    guard let app = parts.first else { throw fault("its bundle '\(bundle)' was not read") }
    let identifier = try identifier(of: app)
    var groups: [(group: BundleIdentifier, source: App.EntitlementSource)] = []
    let own = entitlements(of: app)
    add(own, of: app, &groups)
    var extensions: [App.Extension] = []
    for part in parts.dropFirst() {
      extensions.append(try appExtension(part, of: identifier))
      add(entitlements(of: part), of: part, &groups)
    }
    let migration = migration(for: identifier, app)
    return AppPackage(
      origin: origin, bundleDirectory: bundle, shape: app.shape, identifier: identifier,
      displayName: app.info.displayName, version: app.info.version, build: app.info.build,
      extensions: extensions.sorted { ($0.identifier, $0.path) < ($1.identifier, $1.path) },
      groups: Survey.memberships(groups), hasKnownGroups: own.isKnown, migration: migration,
      size: size, findings: survey.findings.sorted())
  }

  private func identifier(of part: Part) throws(ModelError) -> BundleIdentifier {
    let file = infoPath(of: part)
    guard let identifier = part.info.identifier else {
      let found = survey.findings.first {
        $0.path == file && [.wrongValue, .unusableName].contains($0.code)
      }
      throw fault(
        "its '\(file)' does not identify an app: "
          + "\(found?.reason ?? "its CFBundleIdentifier is empty")",
        hint: "set CFBundleIdentifier to an identifier such as com.example.app")
    }
    if let reason = identifier.fault {
      throw fault(
        "its '\(file)' has the CFBundleIdentifier '\(identifier)', which is invalid: \(reason)",
        hint: "set CFBundleIdentifier to an identifier such as com.example.app")
    }
    return identifier
  }

  private mutating func appExtension(
    _ part: Part, of app: BundleIdentifier
  ) throws(ModelError) -> App.Extension {
    let identifier = try identifier(of: part)
    if !app.isPrefix(of: identifier) {
      survey.warn(
        .contradiction, at: infoPath(of: part),
        because: "the extension's identifier '\(identifier)' does not begin with '\(app).'")
    }
    return App.Extension(
      identifier: identifier, displayName: part.info.displayName, version: part.info.version,
      build: part.info.build, path: part.bundle)
  }

  private func infoPath(of part: Part) -> ByteString {
    let directory =
      part.shape == .contents ? part.bundle.appending(BundleShape.contentsDirectory) : part.bundle
    return directory.appending(PackagePaths.info)
  }

  /// Returns the entitlements of a bundle, in the order given by `Entitlements`.
  private mutating func entitlements(of part: Part) -> Entitlements {
    var entitlements = Entitlements()
    for found in part.facts?.entitlements ?? [] {
      survey.add(
        found.propertyList, from: found.source, as: part.program ?? part.bundle, to: &entitlements)
    }
    let archived = part.programs.appending(PackagePaths.archived)
    if let bytes = files[archived] {
      survey.add(bytes, from: .archivedEntitlements, as: archived, to: &entitlements)
    }
    let profile = part.programs.appending(PackagePaths.profile)
    if let bytes = files[profile] { survey.add(profile: bytes, as: profile, to: &entitlements) }
    return entitlements
  }

  /// Adds the groups with valid identifiers: a wildcard in a profile (`TEAM.*`) is not a group.
  private mutating func add(
    _ entitlements: Entitlements, of part: Part,
    _ groups: inout [(group: BundleIdentifier, source: App.EntitlementSource)]
  ) {
    for (group, source) in entitlements.groups {
      if let reason = group.fault {
        survey.warn(
          .wrongValue, at: part.bundle,
          because: "\(source.rawValue) names the group '\(group)', which is excluded: \(reason)")
      } else {
        groups.append((group, source))
      }
    }
  }

  private mutating func migration(
    for app: BundleIdentifier, _ part: Part
  ) -> ContainerMigration? {
    let path = PackagePaths.migration.reduce(bundle.appending(BundleShape.contentsDirectory)) {
      $0.appending($1)
    }
    guard part.shape == .contents, let bytes = files[path] else { return nil }
    do {
      return try ContainerMigration(reading: bytes, for: app)
    } catch {
      survey.warn(.unusableFile, at: path, because: "it is ignored: \(error.reason)")
      return nil
    }
  }
}

// MARK: - Locations

extension PackageInspection {
  /// The locations of the files that describe a package.
  private enum PackagePaths {
    static let info: ByteString = "Info.plist"
    static let archived: ByteString = "archived-expanded-entitlements.xcent"
    static let profile: ByteString = "embedded.mobileprovision"
    static let programs: ByteString = "MacOS"
    static let migration: [ByteString] = ["Resources", "container-migration.plist"]
    private static let extensionDirectories: Set<ByteString> = ["PlugIns", "Extensions"]
    private static let named: Set<ByteString> = [info, archived, profile]

    /// A bundle in the package, and a path relative to it.
    struct BundlePath {
      /// The bundle's directory: `Example.app`, or `Example.app/PlugIns/Share.appex`.
      let bundle: ByteString
      /// The bundle's structure.
      let shape: BundleShape
      /// The path below the bundle, or below its `Contents`.
      let inner: [ByteString]
    }

    /// Splits a path of a package.
    static func bundlePath(of path: ByteString) -> BundlePath {
      let parts = path.components
      var inner = parts.dropFirst()
      var shape = strip(&inner)
      var length = 1
      if inner.count > 2, extensionDirectories.contains(inner[inner.startIndex]),
        endsInAppex(inner[inner.startIndex + 1])
      {
        inner = inner.dropFirst(2)
        length = parts.count - inner.count
        shape = strip(&inner)
      }
      let bundle = ByteString(joining: parts.prefix(length))
      return BundlePath(bundle: bundle, shape: shape, inner: Array(inner))
    }

    /// Whether a file describes the package.
    static func describesPackage(_ path: ByteString) -> Bool {
      let bundlePath = bundlePath(of: path)
      if bundlePath.shape == .contents, bundlePath.inner == migration { return true }
      let inner =
        bundlePath.shape == .contents && bundlePath.inner.first == programs
        ? bundlePath.inner.dropFirst() : bundlePath.inner[...]
      return inner.count == 1 && inner.first.map(named.contains) == true
    }

    private static func strip(_ parts: inout ArraySlice<ByteString>) -> BundleShape {
      guard parts.count > 1, parts.first == BundleShape.contentsDirectory else { return .flat }
      parts = parts.dropFirst()
      return .contents
    }

    private static func endsInAppex(_ name: ByteString) -> Bool {
      name.count > 6 && name.hasSuffix(".appex")
    }
  }
}

extension BundleIdentifier {
  /// The reason why this is not a valid platform identifier, or nil if it is one. Valid are
  /// letters, digits, `-`, `_`, and dots between non-empty parts, at most 155 bytes.
  ///
  /// Source: Information Property List Key Reference, CFBundleIdentifier; underscores occur in
  /// older apps and in groups. A valid identifier is safe as a directory name.
  var fault: String? {
    if bytes.count > 155 { return "it has \(bytes.count) bytes, and at most 155 are allowed" }
    if bytes.bytes.contains(UInt8(ascii: "$")) {
      return "it contains a variable that the build should have replaced"
    }
    if components.contains(where: \.isEmpty) { return "it has an empty part between dots" }
    let isFine = bytes.bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    return isFine ? nil : "it has characters other than letters, digits, '-', '_' and '.'"
  }
}
