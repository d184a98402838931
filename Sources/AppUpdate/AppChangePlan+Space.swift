internal import AppPackages
package import ArchiveStore
package import Restore
internal import SandboxModel
internal import SystemIO

extension VolumeNeeds {
  /// Computes the needs of an app change: of its package and of the snapshot that it restores.
  package init(_ plan: AppChangePlan, from reader: RepositoryReader? = nil) {
    self.init(of: (plan.restore?.parts ?? []).map(\.plan), from: reader)
    guard let package = plan.request.package,
      let to = plan.containers.first(where: { $0.logical.kind == .bundle && $0.to != nil })?.to
    else { return }
    add(at: to.parent) { _ in (package.size.allocated, UInt64(package.size.entries)) }
  }
}

extension AppChangePlan {
  static let roomHint =
    "free space on that volume, for example with 'sandboxctl purge' or 'sandboxctl trash empty'"

  /// Returns the space needed and the room on the volumes, read from the system with each call.
  ///
  /// - Parameter reader: the repository of a plan that restores data.
  package func volumeNeeds(from reader: RepositoryReader? = nil) -> [VolumeNeed] {
    isSimulated ? [] : VolumeNeeds(self, from: reader).all
  }

  /// Returns a refusal if the package or the restored data does not fit on the device's volumes
  /// now; nil if it does. It is read from the system with each call, so it is not one of the plan's
  /// own refusals.
  ///
  /// - Parameter reader: the repository of a plan that restores data.
  package func missingRoom(from reader: RepositoryReader? = nil) -> Refusal? {
    let needs = volumeNeeds(from: reader)
    guard let need = needs.first(where: { $0.verdict == .lacksRoom }), let reason = need.shortage
    else { return nil }
    return Refusal(.noRoom, "in '\(need.directory)' \(reason)", hint: Self.roomHint)
  }
}
