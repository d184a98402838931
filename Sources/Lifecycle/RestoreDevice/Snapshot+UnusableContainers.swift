public import ArchiveStore
internal import SandboxModel
public import SystemIO

extension Snapshot {
  /// The containers that no device can have, by their logical paths, with the reason: their names would
  /// lead elsewhere as paths (SECURITY.md, "Names become no places"). A restore into a device refuses
  /// them; what they hold can be restored to a plain directory.
  public var unusableContainers: [(path: ByteString, reason: String)] {
    device.containers.compactMap { record in
      record.fault(in: device.layout).map { (record.path, $0) }
    }
  }
}

extension ContainerRecord {
  fileprivate func fault(in layout: String) -> String? {
    if layout == Layout.coreSimulator.rawValue, let uuid, !ByteString(uuid).isUUID {
      return "its uuid '\(ByteString(uuid))' is none"
    }
    if let revision, !ByteString(revision).isSnapRevision {
      return "its revision '\(ByteString(revision))' is none"
    }
    guard let container = try? LogicalPath(path).place?.container else { return nil }
    for name in container.names where !name.identifier.isEmpty {
      if let fault = BundleIdentifier.fault(of: name.identifier) {
        return "its identifier '\(name.identifier)' cannot be one: \(fault)"
      }
    }
    return nil
  }
}

extension LogicalContainer {
  /// The identifiers that a layout would name its directory by.
  fileprivate var names: [LogicalName] {
    switch self {
    case .extension(let name, let app): [name, app]
    case .group(let name): [name]
    case .folder: []
    default: app.map { [$0] } ?? []
    }
  }
}
