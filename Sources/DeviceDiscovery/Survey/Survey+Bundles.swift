internal import Codecs
package import SandboxModel
package import SystemIO

extension Survey {
  /// Reads the bundle in a bundle container.
  mutating func bundle(in container: borrowing Directory, as path: ByteString) -> BundleFacts? {
    let apps = directories(ending: ".app", in: container, as: path)
    guard let name = apps.first else {
      warn(.noSingleBundle, at: path, because: "this bundle container has no .app directory")
      return nil
    }
    if apps.count > 1 {
      let names = apps.map { "'\($0)'" }.joined(separator: ", ")
      warn(
        .noSingleBundle, at: path,
        because: "it contains several bundles (\(names)); the first is used")
    }
    let here = path.appending(name)
    guard let directory = child(name, of: container, as: here) else {
      return BundleFacts(
        directory: name, info: nil, extensions: [], groups: [], hasKnownGroups: false)
    }
    return facts(of: directory, named: name, as: here, .flat)
  }

  /// Reads the data of a bundle.
  mutating func facts(
    of directory: borrowing Directory, named name: ByteString, as path: ByteString,
    _ shape: BundleShape
  ) -> BundleFacts {
    let (info, own) = infoAndEntitlements(of: directory, as: path, shape)
    var groups = own.groups
    let extensions = extensions(of: directory, named: name, as: path, shape, groups: &groups)
    return BundleFacts(
      directory: name, info: info, extensions: extensions, groups: Self.memberships(groups),
      hasKnownGroups: own.isKnown)
  }

  private mutating func infoAndEntitlements(
    of bundle: borrowing Directory, as path: ByteString, _ shape: BundleShape
  ) -> (BundleInfo?, Entitlements) {
    guard shape == .contents else {
      let info = bundleInfo(in: bundle, as: path)
      return (info, entitlements(of: bundle, executable: info?.executable, as: path))
    }
    let here = path.appending(BundleShape.contentsDirectory)
    guard let contents = child(BundleShape.contentsDirectory, of: bundle, as: here) else {
      return (nil, Entitlements())
    }
    let info = bundleInfo(in: contents, as: here)
    let programs = here.appending("MacOS")
    guard let directory = child("MacOS", of: contents, as: programs) else {
      return (info, Entitlements())
    }
    return (info, entitlements(of: directory, executable: info?.executable, as: programs))
  }

  /// Reads the extensions in a bundle and adds their groups.
  private mutating func extensions(
    of bundle: borrowing Directory, named name: ByteString, as path: ByteString,
    _ shape: BundleShape,
    groups: inout [(group: BundleIdentifier, source: App.EntitlementSource)]
  ) -> [App.Extension] {
    var extensions: [App.Extension] = []
    for subdirectory in shape.extensionDirectories {
      let here = path.appending(subdirectory)
      guard let directory = inner(subdirectory.components, of: bundle, as: path) else { continue }
      for appex in directories(ending: ".appex", in: directory, as: here) {
        let file = here.appending(appex)
        guard let inner = child(appex, of: directory, as: file) else { continue }
        let (info, own) = infoAndEntitlements(of: inner, as: file, shape)
        guard let info else { continue }
        groups += own.groups
        guard let identifier = info.identifier else { continue }
        extensions.append(
          App.Extension(
            identifier: identifier, displayName: info.displayName, version: info.version,
            build: info.build, path: name.appending(subdirectory).appending(appex)))
      }
    }
    return extensions.sorted { ($0.identifier, $0.path) < ($1.identifier, $1.path) }
  }

  /// Returns the subdirectories with a name extension, sorted.
  mutating func directories(
    ending: String, in directory: borrowing Directory, as path: ByteString
  ) -> [ByteString] {
    var found: [ByteString] = []
    for name in names(in: directory, as: path)
    where name.count > ending.utf8.count && name.hasSuffix(ending) {
      if kind(of: name, in: directory, as: path.appending(name)) == .directory {
        found.append(name)
      }
    }
    return found
  }

  /// Opens a directory inside a container, where links are not followed.
  mutating func child(
    _ name: ByteString, of directory: borrowing Directory, as path: ByteString
  ) -> Directory? {
    do {
      guard try directory.statusIfPresent(name)?.kind == .directory else { return nil }
      return try directory.directory(name)
    } catch {
      warn(.unreadable, at: path, because: "it cannot be opened: \(error.reason)")
      return nil
    }
  }

  package static func memberships(
    _ groups: [(group: BundleIdentifier, source: App.EntitlementSource)]
  ) -> [App.GroupMembership] {
    var seen: Set<BundleIdentifier> = []
    return groups.filter { seen.insert($0.group).inserted }
      .map { App.GroupMembership(group: $0.group, basis: .known($0.source)) }
      .sorted { $0.group < $1.group }
  }
}

// MARK: - Entitlements

extension Survey {
  /// Reads the entitlements of a bundle (an app or an extension) from all sources.
  mutating func entitlements(
    of bundle: borrowing Directory, executable: ByteString?, as path: ByteString
  ) -> Entitlements {
    var entitlements = Entitlements()
    if let executable {
      for found in program(executable, in: bundle, as: path.appending(executable)) {
        add(
          found.propertyList, from: found.source, as: path.appending(executable), to: &entitlements)
      }
    }
    let archived: ByteString = "archived-expanded-entitlements.xcent"
    let file = path.appending(archived)
    if let bytes = bytes(of: archived, in: bundle, as: file, limit: Entitlements.limit) {
      add(bytes, from: .archivedEntitlements, as: file, to: &entitlements)
    }
    profile(of: bundle, as: path.appending("embedded.mobileprovision"), to: &entitlements)
    return entitlements
  }

  private mutating func program(
    _ name: ByteString, in bundle: borrowing Directory, as path: ByteString
  ) -> [MachO.FoundEntitlements] {
    guard isProgramName(name, as: path) else { return [] }
    do {
      guard let status = try bundle.statusIfPresent(name), status.kind == .file else { return [] }
      return try MachO.entitlements(in: try bundle.file(name))
    } catch {
      warn(.unusableFile, at: path, because: "its entitlements cannot be read: \(error.reason)")
      return []
    }
  }

  /// Whether a name is valid for an executable in a bundle; adds a warning if it is not.
  package mutating func isProgramName(_ name: ByteString, as path: ByteString) -> Bool {
    if name.components == [name], name != "..", name != ".", !name.hasNUL { return true }
    warn(.wrongValue, at: path, because: "CFBundleExecutable is not a file name")
    return false
  }

  /// Adds a property list with entitlements.
  package mutating func add(
    _ bytes: [UInt8], from source: App.EntitlementSource, as path: ByteString,
    to entitlements: inout Entitlements
  ) {
    // In old builds the archived form begins with the header of a signature blob.
    let list = bytes.starts(with: [0xfa, 0xde, 0x71, 0x71]) ? Array(bytes.dropFirst(8)) : bytes
    if let value = dictionary(list, as: path) { entitlements.add(value, from: source) }
  }

  private mutating func profile(
    of bundle: borrowing Directory, as path: ByteString, to entitlements: inout Entitlements
  ) {
    guard
      let bytes = bytes(
        of: "embedded.mobileprovision", in: bundle, as: path, limit: Entitlements.limit)
    else { return }
    add(profile: bytes, as: path, to: &entitlements)
  }

  /// Adds the entitlements in a provisioning profile.
  package mutating func add(
    profile bytes: [UInt8], as path: ByteString, to entitlements: inout Entitlements
  ) {
    guard let text = Entitlements.propertyList(inProfile: bytes) else {
      warn(.unusableFile, at: path, because: "it contains no property list")
      return
    }
    guard let value = dictionary(text, as: path) else { return }
    guard let named = value["Entitlements"], named.dictionaryValue != nil else {
      warn(.wrongValue, at: path, because: "it has no dictionary 'Entitlements'")
      return
    }
    entitlements.add(named, from: .provisioningProfile)
  }
}

/// The data of a bundle's Info.plist.
package struct BundleInfo {
  package var identifier: BundleIdentifier?
  package var displayName: ByteString?
  package var version: ByteString?
  package var build: ByteString?
  /// The name of the bundle's executable.
  package var executable: ByteString?
}

/// The structure of a bundle (Bundle Programming Guide, Bundle Structures).
package enum BundleShape: String, Hashable, Sendable {
  /// Files at the top level, as on iOS.
  case flat
  /// Files in `Contents`, as on macOS.
  case contents

  package static let contentsDirectory: ByteString = "Contents"

  /// The directories with extensions.
  var extensionDirectories: [ByteString] {
    switch self {
    case .flat: ["PlugIns", "Extensions"]
    case .contents: ["Contents/PlugIns", "Contents/Extensions"]
    }
  }
}

/// The data of the bundle in a container.
struct BundleFacts {
  /// The bundle's directory, `Example.app`.
  let directory: ByteString
  let info: BundleInfo?
  let extensions: [App.Extension]
  /// The groups of the app and its extensions, without duplicates.
  let groups: [App.GroupMembership]
  /// Whether the app's own entitlements could be read. If so, no further groups are guessed.
  let hasKnownGroups: Bool
}

extension App {
  /// Creates an app with the data of its bundle, if that exists.
  init(
    _ identifier: BundleIdentifier, isInstalled: Bool, info: BundleInfo?,
    extensions: [App.Extension] = [], groups: [App.GroupMembership] = [],
    installation: App.FlatpakInstallation? = nil
  ) {
    self.init(
      identifier, isInstalled: isInstalled, displayName: info?.displayName, version: info?.version,
      build: info?.build, extensions: extensions, groups: groups, installation: installation)
  }
}
