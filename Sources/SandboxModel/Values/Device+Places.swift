public import SystemIO

/// Where a container is to be: below one of the layout's own directories, by names of one component
/// each. There is no other way to make one, so that no identifier, UUID or revision that an app, a
/// snapshot or a package says leads out of that directory (SECURITY.md).
public struct ContainerLocation: Hashable, Sendable {
  /// The directory that the container's own is in, or for a container that is one file the file;
  /// absolute, with the links that the layout's directories may be resolved.
  public let parent: ByteString
  /// The name in it.
  public let name: ByteString

  /// The absolute path.
  public var path: ByteString { parent.appending(name) }

  /// - Parameters:
  ///   - directory: the layout's directory.
  ///   - names: each one component below the one before.
  /// - Throws: `containerName` for a name that is no plain component, or one of this program's own, and
  ///   for a directory to which only a link of another user leads, which root does not follow.
  init(
    in directory: ByteString, _ names: ByteString..., of container: LogicalContainer
  ) throws(ModelError) {
    for name in names {
      if let fault = name.nameFault { throw .containerName(name, of: container, fault) }
      if OwnNames.has(name) {
        throw .containerName(name, of: container, "it is one of this program's own directories")
      }
    }
    if let link = ForeignLink.first(in: directory) {
      throw ModelError(
        .containerName, "use the container", on: container.prefix,
        "'\(link.path)' is a link of user \(link.owner), and root does not follow the links of others",
        hint: "run as the user whose device it is")
    }
    let path = names.reduce(Host.resolved(directory)) { $0.appending($1) }
    (parent, name) = (path.parent, names.last ?? "")
  }
}

extension ModelError {
  static func containerName(
    _ name: ByteString, of container: LogicalContainer, _ fault: String
  ) -> ModelError {
    ModelError(
      .containerName, "use the container", on: container.prefix,
      "its name '\(name)' is not one that a platform gives: \(fault)",
      hint: "its files can be restored to a directory: 'sandboxctl restore SNAP:PATH --to DIR'")
  }
}

extension Device {
  /// Where the layout has a container that the device lacks; nil where it can have none of the kind.
  ///
  /// - Parameter name: the UUID of its directory, where the layout names directories so, a new one unless
  ///   given; or the number of a snap's revision.
  /// - Throws: `containerName` if the layout would name a directory by what is not one plain component,
  ///   no UUID or no revision.
  public func place(
    forNew container: LogicalContainer, named name: ByteString? = nil
  ) throws(ModelError) -> ContainerLocation? {
    switch layout {
    case .coreSimulator: try simulatorLocation(forNew: container, name ?? Self.newUUID())
    case .flatpak: try flatpakLocation(forNew: container)
    case .macOS: try desktopLocation(forNew: container)
    case .snap: try snapLocation(forNew: container, revision: name)
    case .folder: nil
    }
  }

  /// A UUID as platforms name containers by: version 4 of RFC 9562, in capitals.
  static func newUUID() -> ByteString { uuid(ofDigits: Host.randomHex(bytes: 16)) }

  /// The UUID of that form that the first 16 of some bytes make; there must be as many.
  public static func uuid(of bytes: some Sequence<UInt8>) -> ByteString {
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
    for place in [20, 16, 12, 8] { digits.insert("-", at: place) }
    return ByteString(String(digits))
  }

  private func simulatorLocation(
    forNew container: LogicalContainer, _ name: ByteString
  ) throws(ModelError) -> ContainerLocation? {
    guard name.isUUID else { throw .containerName(name, of: container, "it is no UUID") }
    let kind = container.kind
    guard let directory = try? Directory.open(path: root),
      let place = DeviceFinder.simulatorLocation(of: directory)
    else { return nil }
    let base: ByteString =
      switch (place, kind) {
      case (.device, _): "data/Containers"
      case (.data, _): "Containers"
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

  /// Containers of macOS are named after what they are of; a bundle comes with its installation.
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

  /// The user's data of a snap; the system's is for snapd to bring back, and old revisions are in no
  /// backup.
  private func snapLocation(
    forNew container: LogicalContainer, revision: ByteString?
  ) throws(ModelError) -> ContainerLocation? {
    switch container {
    case .data(let app):
      return try ContainerLocation(in: root, app.identifier, "common", of: container)
    case .revision(let app):
      guard let revision else { return nil }
      guard SnapHome.isRevision(revision) else {
        throw .containerName(revision, of: container, "it is no revision")
      }
      return try ContainerLocation(in: root, app.identifier, revision, of: container)
    default: return nil
    }
  }

  private func flatpakLocation(
    forNew container: LogicalContainer
  ) throws(ModelError) -> ContainerLocation? {
    switch container {
    case .data(let app): return try ContainerLocation(in: root, app.identifier, of: container)
    case .settings(let app):
      guard let overrides = DeviceFinder.overrides(ofAppsIn: root) else { return nil }
      return try ContainerLocation(in: overrides, app.identifier, of: container)
    default: return nil
    }
  }
}

extension Device {
  /// The directories in which the layout has containers, with the links in them resolved.
  public var containerDirectories: [ByteString] {
    let directories: [ByteString?] =
      switch layout {
      case .macOS:
        ["Library/Containers", "Library/Group Containers", "Applications"].map {
          root.appending($0)
        }
      case .flatpak: [root, DeviceFinder.overrides(ofAppsIn: root)]
      case .coreSimulator, .snap, .folder: [root]
      }
    return directories.compactMap { $0 }.filter { ForeignLink.first(in: $0) == nil }
      .map(Host.resolved)
  }
}

extension LogicalName {
  /// The name of a directory that the platform calls by its container's identifier: that of one which
  /// nothing identifies is a UUID, which a snapshot has as its instance.
  fileprivate var ownDirectory: ByteString {
    identifier.isEmpty && instance?.isUUID == true ? instance ?? "" : identifier
  }
}

extension DeviceFinder {
  /// The directory of a user's overrides, for the directory `.var/app` of the home; nil elsewhere.
  static func overrides(ofAppsIn root: ByteString) -> ByteString? {
    guard let home = try? DeviceFinder().home(of: root) else { return nil }
    return installation(of: home).appending("overrides")
  }
}
