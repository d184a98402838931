package import SandboxModel
package import SystemIO

/// The Share extensions of a device, with the decision whether each is offered for attachments.
package struct ShareOffers: Sendable {
  package let attachments: SharedAttachments
  /// The Share extensions by app and identifier.
  package let offers: [Offer]
  package let exclusions: [Exclusion]

  /// An extension and the decision about it.
  package struct Offer: Sendable {
    package let `extension`: AppExtension
    package let result: ActivationResult
  }

  /// A type that the sharing app excludes. UIActivityViewController.excludedActivityTypes has the
  /// types of activities; that of an extension is its bundle identifier.
  package struct Exclusion: Sendable, Hashable {
    package let type: ByteString
    package let meaning: Meaning
    /// The name of the activity or the point, or nil.
    package let name: String?

    package enum Meaning: String, Sendable, Hashable {
      /// An extension of the device.
      case `extension`
      /// All extensions of an extension point.
      case point
      /// A service of the system, which is not an extension of an app.
      case activity
      case unknown
    }
  }

  /// The conditions of a share.
  package struct Conditions: Sendable {
    let excluded: [ByteString]
    let layout: Layout
    /// The version of the device's system, or nil for the newest.
    let version: SystemVersion?

    /// Creates conditions.
    package init(excluded: [ByteString] = [], layout: Layout, version: SystemVersion?) {
      self.excluded = excluded
      self.layout = layout
      self.version = version
    }
  }

  /// Decides about each Share extension.
  package init(
    _ attachments: SharedAttachments, _ conditions: Conditions, of catalog: ExtensionCatalog,
    points: ExtensionPoints, in tree: TypeTree
  ) {
    self.attachments = attachments
    let found = catalog.extensions.filter { $0.point == ExtensionPoints.share }
    exclusions = conditions.excluded.map { Self.exclusion(of: $0, among: found, points) }
    let tooOld = Self.reasonAgainst(conditions, points)
    let isPointExcluded = conditions.excluded.contains(ExtensionPoints.share)
    offers = found.map { item in
      if isPointExcluded || conditions.excluded.contains(item.identifier.bytes) {
        let type = isPointExcluded ? ExtensionPoints.share : item.identifier.bytes
        return Offer(
          extension: item,
          result: ActivationResult(verdict: .excluded, reasons: ["'\(type)' is excluded"]))
      }
      if let tooOld {
        return Offer(
          extension: item, result: ActivationResult(verdict: .notOffered, reasons: [tooOld]))
      }
      return Offer(extension: item, result: item.rule.result(for: attachments, in: tree))
    }
  }

  private static func exclusion(
    of type: ByteString, among extensions: [AppExtension], _ points: ExtensionPoints
  ) -> Exclusion {
    if let found = extensions.first(where: { $0.identifier.bytes == type }) {
      return Exclusion(
        type: type, meaning: .extension, name: (found.name ?? found.appName)?.description)
    }
    if let point = points.point(type) {
      return Exclusion(type: type, meaning: .point, name: point.name)
    }
    if let activity = points.activity(type) {
      return Exclusion(type: type, meaning: .activity, name: activity.name)
    }
    return Exclusion(type: type, meaning: .unknown, name: nil)
  }

  /// Returns the reason why a version of the system offers no Share extension at all, or nil.
  private static func reasonAgainst(
    _ conditions: Conditions, _ points: ExtensionPoints
  ) -> String? {
    guard let version = conditions.version, let point = points.point(ExtensionPoints.share),
      let first = point.first(on: conditions.layout), version < first
    else { return nil }
    return "the system has Share extensions from version \(first), and this is \(version)"
  }

  /// The extensions that are offered.
  package var offered: [AppExtension] {
    offers.filter { $0.result.verdict == .offered }.map(\.extension)
  }
}
