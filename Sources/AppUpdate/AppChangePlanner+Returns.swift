internal import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import Restore
internal import SandboxModel
internal import SystemIO

/// Data that a rollback restores in addition to the snapshot: the entries that the update moved to
/// the trash, as long as they are there. An update followed by a rollback therefore restores the
/// original state even if the update discarded data that is never backed up.
extension AppChangePlanner {
  func planReturns(_ stored: StoredSnapshot, _ plan: inout AppChangePlan) {
    guard request.data != .now, let parts = plan.restore?.parts,
      let item = try? Trash(of: device).unmeasured().last(where: {
        $0.operation == AppChange.update.rawValue && $0.saved == stored.id.hex
      })
    else { return }
    let anchors = anchors(to: plan, of: stored)
    for place in plan.containers.indices where plan.containers[place].logical.kind != .bundle {
      let planned = plan.containers[place]
      guard let part = parts.first(where: { $0.path == planned.path }) else { continue }
      var returns = TrashRestores(
        part, planned.logical.kind, in: planned.scanned.map { scan.containers[$0] },
        anchors: anchors, policy: scan.policy)
      for directory in item.directories {
        guard let trash = try? Directory.open(resolved: directory.appending(planned.path)) else {
          continue
        }
        returns.look(in: trash, leaving: ContainerMetadata.names(of: device.layout))
      }
      plan.containers[place].returns = returns.returns
      plan.containers[place].links = returns.links.sorted { $0.path < $1.path }
    }
  }

  /// Returns the mapping from the containers' locations before the update to their current ones.
  private func anchors(to plan: AppChangePlan, of stored: StoredSnapshot) -> LinkAnchors {
    LinkAnchors(
      stored.snapshot.device.containers.compactMap { record in
        let planned = plan.containers.first { $0.path == record.path }
        let here = (try? LogicalPath(record.path).place?.container).flatMap {
          device.container($0)?.absolutePath
        }
        guard let to = planned?.to ?? here else { return nil }
        return LinkAnchors.Anchor(
          uuid: record.uuid.map { ByteString($0) }, from: record.realPath, to: to)
      })
  }
}
