package import ArchiveStore
internal import DeviceDiscovery
internal import SandboxModel
package import SystemIO

extension Snapshot {
  /// The containers that no device can have, by their logical paths, with the reason: their names
  /// would be paths to other locations (SECURITY.md). A restore into a device refuses them; their
  /// contents can be restored to a plain directory.
  package var unusableContainers: [(path: ByteString, reason: String)] {
    device.containers.compactMap { record in
      record.fault(in: device.layout).map { (record.path, $0) }
    }
  }
}

extension DeviceRecord.Container {
  fileprivate func fault(in layout: String) -> String? {
    if layout == Layout.coreSimulator.rawValue, let uuid, !ByteString(uuid).isUUID {
      return "its uuid '\(ByteString(uuid))' is not a UUID"
    }
    if let revision, !ByteString(revision).isSnapRevision {
      return "its revision '\(ByteString(revision))' is not a snap revision"
    }
    guard let container = try? LogicalPath(path).place?.container else { return nil }
    for name in container.names where !name.identifier.isEmpty {
      if let fault = BundleIdentifier.fault(of: name.identifier) {
        return "its identifier '\(name.identifier)' is invalid: \(fault)"
      }
    }
    return nil
  }
}
