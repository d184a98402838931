public import SystemIO

/// Where a container lies or is to lie.
public struct ContainerPlace: Hashable, Sendable {
  /// The folder that the container's own is in, or for a container that is one file the file.
  public let parent: ByteString
  /// The name in it.
  public let name: ByteString

  /// The absolute path.
  public var path: ByteString { parent.appending(name) }
}

extension Device {
  /// Where the layout has a container that the device lacks; nil where it can have none of the kind.
  ///
  /// - Parameter uuid: the name of its folder, where the layout names folders so, or the number of a
  ///   snap's revision; a new UUID unless given.
  public func place(forNew container: LogicalContainer, uuid: ByteString? = nil) -> ContainerPlace?
  {
    switch layout {
    case .coreSimulator: simulatorPlace(forNew: container.kind, uuid ?? Self.newUUID())
    case .flatpak: flatpakPlace(forNew: container)
    case .macOS: desktopPlace(forNew: container)
    case .snap: snapPlace(forNew: container, revision: uuid)
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

  private func simulatorPlace(
    forNew kind: ContainerKind, _ name: ByteString
  ) -> ContainerPlace? {
    guard let folder = try? Folder.open(path: root),
      let place = DeviceFinder.simulatorPlace(of: folder)
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
    return family.map {
      ContainerPlace(parent: root.appending(base).appending($0), name: name)
    }
  }

  /// Containers of macOS are named after what they are of; a bundle comes with its installation.
  private func desktopPlace(forNew container: LogicalContainer) -> ContainerPlace? {
    let library = root.appending("Library")
    switch container {
    case .data(let name), .extension(let name, _):
      return ContainerPlace(
        parent: library.appending("Containers").appending(name.identifier), name: "Data")
    case .group(let name):
      return ContainerPlace(
        parent: library.appending("Group Containers"), name: name.identifier)
    default: return nil
    }
  }

  /// The user's data of a snap; the system's is for snapd to bring back, and old revisions are in no
  /// backup.
  private func snapPlace(
    forNew container: LogicalContainer, revision: ByteString?
  ) -> ContainerPlace? {
    switch container {
    case .data(let app):
      ContainerPlace(parent: root.appending(app.identifier), name: "common")
    case .revision(let app):
      revision.map { ContainerPlace(parent: root.appending(app.identifier), name: $0) }
    default: nil
    }
  }

  private func flatpakPlace(forNew container: LogicalContainer) -> ContainerPlace? {
    switch container {
    case .data(let app): ContainerPlace(parent: root, name: app.identifier)
    case .settings(let app):
      DeviceFinder.overrides(ofAppsIn: root).map {
        ContainerPlace(parent: $0, name: app.identifier)
      }
    default: nil
    }
  }
}

extension DeviceFinder {
  /// The folder of a user's overrides, for the folder `.var/app` of the home; nil elsewhere.
  static func overrides(ofAppsIn root: ByteString) -> ByteString? {
    guard let home = try? DeviceFinder().home(of: root) else { return nil }
    return installation(of: home).appending("overrides")
  }
}
