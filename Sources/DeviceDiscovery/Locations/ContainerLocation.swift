package import SandboxModel
package import SystemIO

/// The location of a container to create: names of one component each below one of the layout's
/// directories. All new containers are created with this type, so that no identifier, UUID or
/// revision from an app, a snapshot or a package can lead out of that directory (SECURITY.md).
package struct ContainerLocation: Hashable, Sendable {
  /// The directory that contains the container's own directory or, for a single-file container, the
  /// file. Absolute, with links in the layout's directories resolved.
  package let parent: ByteString
  /// The name in `parent`.
  package let name: ByteString

  /// The absolute path.
  package var path: ByteString { parent.appending(name) }

  /// - Parameters:
  ///   - directory: The layout's directory.
  ///   - names: The components of the path below it.
  /// - Throws: `containerName` if a name is not a plain component or is one of this program's own,
  ///   and if the directory is reached through another user's link, which root does not follow.
  init(
    in directory: ByteString, _ names: ByteString..., of container: LogicalContainer
  ) throws(ModelError) {
    try self.init(in: directory, path: names, of: container)
  }

  /// As above, with the components as a list. An empty list is refused.
  init(
    in directory: ByteString, path names: [ByteString], of container: LogicalContainer
  ) throws(ModelError) {
    if names.isEmpty { throw .containerName("", of: container, "it is empty") }
    for name in names {
      if let fault = name.nameFault { throw .containerName(name, of: container, fault) }
      if OwnNames.has(name) {
        throw .containerName(
          name, of: container, "it is the name of one of this program's own directories")
      }
    }
    let resolution: ForeignLink.Resolution
    do throws(SystemError) {
      resolution = try ForeignLink.resolve(directory, allowsMissing: true)
    } catch { throw ModelError(error, "use the container '\(container.prefix)' in") }
    switch resolution {
    case .path(let real):
      (parent, name) = (
        names.reduce(real) { $0.appending($1) }.parent, names.last ?? ""
      )
    case .foreign(let link):
      throw ModelError(
        .containerName, "use the container", on: container.prefix, reason: link.reason,
        hint: ForeignLink.hint)
    }
  }
}

extension ModelError {
  fileprivate static func containerName(
    _ name: ByteString, of container: LogicalContainer, _ fault: String
  ) -> ModelError {
    ModelError(
      .containerName, "use the container", on: container.prefix,
      reason: "its name '\(name)' is not a valid platform name: \(fault)",
      hint: "its files can be restored to a directory: 'sandboxctl restore SNAP:PATH --to DIR'")
  }
}

extension Device {
  /// Returns the location for a container that the device lacks, or nil if the layout has no
  /// containers of that kind.
  ///
  /// - Parameters:
  ///   - name: The UUID of its directory, if the layout names directories by UUID (default: a new
  ///     one), or the number of a snap's revision.
  ///   - units: The directories of the system's units; one object for many containers.
  /// - Throws: `containerName` if the directory's name would not be a plain component, a UUID or a
  ///   revision, as the layout requires.
  package func location(
    forNew container: LogicalContainer, named name: ByteString? = nil,
    units: UnitDirectories = UnitDirectories()
  ) throws(ModelError) -> ContainerLocation? {
    switch layout {
    case .coreSimulator: try simulatorLocation(forNew: container, name ?? Self.newUUID())
    case .flatpak: try flatpakLocation(forNew: container)
    case .macOS: try desktopLocation(forNew: container)
    case .snap: try snapLocation(forNew: container, revision: name)
    case .android: try androidLocation(forNew: container)
    case .systemd: try systemdLocation(forNew: container, units)
    case .xdg: try xdgLocation(forNew: container)
    case .folder: nil
    }
  }

  /// Returns a new UUID in the form used for container names: version 4 of RFC 9562, in capital
  /// letters.
  static func newUUID() -> ByteString { uuid(ofDigits: Host.randomHex(bytes: 16)) }

  /// Returns a UUID in that form from the first 16 bytes of a sequence, which must have at least
  /// 16.
  package static func uuid(of bytes: some Sequence<UInt8>) -> ByteString {
    let digits = bytes.prefix(16).map { byte in
      let text = String(byte, radix: 16)
      return byte < 16 ? "0" + text : text
    }
    return uuid(ofDigits: digits.joined())
  }

  private static func uuid(ofDigits hex: String) -> ByteString {
    var digits = Array(hex.uppercased())
    digits[12] = "4"
    let variant: [Character] = ["8", "9", "A", "B"]
    digits[16] = variant[(digits[16].hexDigitValue ?? 0) % 4]
    for index in [20, 16, 12, 8] { digits.insert("-", at: index) }
    return ByteString(String(digits))
  }

  private func simulatorLocation(
    forNew container: LogicalContainer, _ name: ByteString
  ) throws(ModelError) -> ContainerLocation? {
    guard name.isUUID else { throw .containerName(name, of: container, "it is not a UUID") }
    let kind = container.kind
    guard let directory = try? Directory.open(resolved: root),
      let form = DeviceFinder.simulatorForm(of: directory), form != .appData
    else { return nil }
    let base: ByteString =
      switch (form, kind) {
      case (.device, _): "data/Containers"
      case (.data, _), (.appData, _): "Containers"
      case (.fileSystem, .bundle): "private/var/containers"
      case (.fileSystem, _): "private/var/mobile/Containers"
      }
    let family: ByteString? =
      switch kind {
      case .bundle: "Bundle/Application"
      case .data: "Data/Application"
      case .extension: "Data/PluginKitPlugin"
      case .group: "Shared/AppGroup"
      default: nil
      }
    guard let family else { return nil }
    return try ContainerLocation(
      in: root.appending(base).appending(family), name, of: container)
  }

  /// Containers of macOS are named by identifier; bundles are installed separately.
  private func desktopLocation(
    forNew container: LogicalContainer
  ) throws(ModelError) -> ContainerLocation? {
    let library = root.appending("Library")
    switch container {
    case .data(let name), .extension(let name, _):
      return try ContainerLocation(
        in: library.appending("Containers"), name.ownDirectory, "Data", of: container)
    case .group(let name):
      return try ContainerLocation(
        in: library.appending("Group Containers"), name.ownDirectory, of: container)
    default: return nil
    }
  }

  /// Returns the location of a snap's user data. System data is restored by snapd, and old
  /// revisions are not backed up.
  private func snapLocation(
    forNew container: LogicalContainer, revision: ByteString?
  ) throws(ModelError) -> ContainerLocation? {
    switch container {
    case .data(let app):
      return try ContainerLocation(in: root, app.identifier, "common", of: container)
    case .revision(let app):
      guard let revision else { return nil }
      guard SnapFinder.Home.isRevision(revision) else {
        throw .containerName(revision, of: container, "it is not a revision")
      }
      return try ContainerLocation(in: root, app.identifier, revision, of: container)
    default: return nil
    }
  }

  private func androidLocation(
    forNew container: LogicalContainer
  ) throws(ModelError) -> ContainerLocation? {
    guard case .data(let app) = container, !app.isUnidentified else { return nil }
    return try ContainerLocation(in: root, app.identifier, of: container)
  }

  /// Returns the location of a directory that the settings of the unit on this system name, or nil
  /// if they do not: below `/etc`, a name from a snapshot could be that of any program's
  /// configuration. For a dynamic user, the manager itself moves the directory to `private` when
  /// the unit starts (systemd, src/core/exec-invoke.c, setup_exec_directory).
  private func systemdLocation(
    forNew container: LogicalContainer, _ units: UnitDirectories
  ) throws(ModelError) -> ContainerLocation? {
    guard case .directory(let purpose, let name, let unit) = container,
      let system = try? Directory.open(resolved: root),
      units.has(name.identifier, for: purpose, of: unit.identifier, in: system)
    else { return nil }
    let parts = name.identifier.bytes
      .split(separator: ByteString.slash, omittingEmptySubsequences: false)
      .map { ByteString($0) }
    let location = try ContainerLocation(
      in: root.appending(purpose.base), path: parts, of: container)
    // A link in another system's files leads to a directory of this one.
    return location.parent.isWithin(root) ? location : nil
  }

  private func xdgLocation(
    forNew container: LogicalContainer
  ) throws(ModelError) -> ContainerLocation? {
    let base =
      switch container {
      case .file(let base, _): XDGFinder.bases.first { $0.ofFiles == base }
      case .config, .data, .state, .cache: XDGFinder.bases.first { $0.kind == container.kind }
      default: nil as XDGFinder.Base?
      }
    guard let base, let app = container.app, !app.isUnidentified,
      base.kind != .cache || app.identifier != XDGFinder.program
    else { return nil }
    return try ContainerLocation(
      in: root.appending(base.path), app.identifier, of: container)
  }

  private func flatpakLocation(
    forNew container: LogicalContainer
  ) throws(ModelError) -> ContainerLocation? {
    switch container {
    case .data(let app): return try ContainerLocation(in: root, app.identifier, of: container)
    case .settings(let app):
      guard let overrides = FlatpakFinder.overrides(ofAppsIn: root) else { return nil }
      return try ContainerLocation(in: overrides, app.identifier, of: container)
    default: return nil
    }
  }
}

extension Device {
  /// The directories in which the layout has containers, with links resolved.
  package var containerDirectories: [ByteString] {
    let directories: [ByteString?] =
      switch layout {
      case .macOS:
        ["Library/Containers", "Library/Group Containers", "Applications"].map {
          root.appending($0)
        }
      case .flatpak: [root, FlatpakFinder.overrides(ofAppsIn: root)]
      case .systemd:
        LogicalContainer.UnitPurpose.allCases.map { root.appending($0.base) }
      case .xdg: XDGFinder.bases.map { root.appending($0.path) }
      case .coreSimulator, .snap, .android, .folder: [root]
      }
    return directories.compactMap { directory in
      guard let directory,
        case .path(let real)? = try? ForeignLink.resolve(directory, allowsMissing: true)
      else { return nil }
      return real
    }
  }
}

extension LogicalName {
  /// Whether it is the name of a container whose app is unknown, for example because the name is
  /// too long. The layouts that name directories after apps have no place for a new one.
  fileprivate var isUnidentified: Bool { identifier.isEmpty && instance != nil }

  /// The name of a directory that the platform names by identifier; for an unidentified container,
  /// the UUID stored as its instance.
  fileprivate var ownDirectory: ByteString {
    identifier.isEmpty && instance?.isUUID == true ? instance ?? "" : identifier
  }
}
