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
  /// - Parameter uuid: the name of its folder, where the layout names folders so; a new one unless
  ///   given.
  public func place(forNew container: LogicalContainer, uuid: ByteString? = nil) -> ContainerPlace?
  {
    switch layout {
    case .coreSimulator: simulatorPlace(forNew: container.kind, uuid ?? Self.newUUID())
    case .flatpak: flatpakPlace(forNew: container)
    // Only the platform's own program makes these as the platform wants them, when it installs the
    // app or the app first runs; till then data waits.
    case .macOS, .snap: nil
    case .folder: nil
    }
  }

  /// A UUID as platforms name containers by: version 4 of RFC 9562, in capitals.
  static func newUUID() -> ByteString {
    var digits = Array(Host.randomHex(bytes: 16).uppercased())
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
