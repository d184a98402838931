internal import ArchiveStore
internal import Codecs
internal import SandboxModel
internal import SystemIO

/// What a rollback brings back besides what the snapshot holds: what the update put into the trash, as long
/// as it is there. So an update and a rollback with nothing between are the identity also where the update
/// dropped what is never backed up.
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
      var returns = TrashReturns(
        part, planned.logical.kind, in: planned.scanned.map { scan.containers[$0] },
        anchors: anchors, policy: scan.policy)
      for directory in item.directories {
        guard let trash = try? Directory.open(resolved: directory.appending(planned.path)) else {
          continue
        }
        returns.look(in: trash, leaving: MadeMetadata.names(of: device.layout))
      }
      plan.containers[place].returns = returns.returns
      plan.containers[place].links = returns.links.sorted { $0.path < $1.path }
    }
  }

  /// Where the containers of before the update are now.
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
