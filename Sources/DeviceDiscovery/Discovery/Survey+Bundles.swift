package import SandboxModel
internal import SystemIO

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
    groups: inout [(group: BundleIdentifier, source: EntitlementSource)]
  ) -> [AppExtension] {
    var extensions: [AppExtension] = []
    for place in shape.extensionDirectories {
      let here = path.appending(place)
      guard let directory = inner(place.components, of: bundle, as: path) else { continue }
      for appex in directories(ending: ".appex", in: directory, as: here) {
        let file = here.appending(appex)
        guard let inner = child(appex, of: directory, as: file) else { continue }
        let (info, own) = infoAndEntitlements(of: inner, as: file, shape)
        guard let info else { continue }
        groups += own.groups
        guard let identifier = info.identifier else { continue }
        extensions.append(
          AppExtension(
            identifier: identifier, displayName: info.displayName, version: info.version,
            build: info.build, path: name.appending(place).appending(appex)))
      }
    }
    return extensions.sorted { ($0.identifier, $0.path) < ($1.identifier, $1.path) }
  }

  /// Returns the subdirectories with a name extension, sorted.
  mutating func directories(
    ending: StaticString, in directory: borrowing Directory, as path: ByteString
  ) -> [ByteString] {
    let ending = ending.withUTF8Buffer { Array($0) }
    var found: [ByteString] = []
    for name in names(in: directory, as: path) where name.count > ending.count {
      guard name.bytes.suffix(ending.count).elementsEqual(ending) else { continue }
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
    _ groups: [(group: BundleIdentifier, source: EntitlementSource)]
  ) -> [GroupMembership] {
    var seen: Set<BundleIdentifier> = []
    return groups.filter { seen.insert($0.group).inserted }
      .map { GroupMembership(group: $0.group, basis: .known($0.source)) }
      .sorted { $0.group < $1.group }
  }
}
