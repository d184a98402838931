internal import Codecs
package import SandboxModel
package import SystemIO

/// The extension points and the activities of the system: `policies/interapp/extensions.yaml`.
package struct ExtensionPoints: Sendable {
  package let points: [Point]
  package let activities: [Activity]

  /// A place in the system where app extensions are used.
  package struct Point: Sendable, Hashable {
    /// The value of NSExtensionPointIdentifier.
    package let identifier: ByteString
    /// The display name.
    package let name: String
    /// The first version of iOS with the point, or nil if there is none or it is unknown.
    package let iOS: SystemVersion?
    /// The first version of macOS with the point, or nil if there is none or it is unknown.
    package let macOS: SystemVersion?
    /// The document that describes the point.
    package let source: String

    /// Returns the first version of a layout's system that has the point, or nil.
    package func first(on layout: Layout) -> SystemVersion? { layout == .macOS ? macOS : iOS }
  }

  /// A system service in the list of activities (UIActivity.ActivityType).
  package struct Activity: Sendable, Hashable {
    package let identifier: ByteString
    package let name: String
    package let source: String
  }

  /// Reads the file.
  ///
  /// - Throws: `failed` for a mistake, with line and column.
  package init(reading bytes: [UInt8], name: String) throws(OperationError) {
    let file = try DataFile(bytes, name: name, kind: "extensions")
    _ = try file.entries(of: file.root, keys: ["extensions", "schema", "points", "activities"])
    var (points, activities): ([Point], [Activity]) = ([], [])
    for node in try file.list(file.root["points"]) {
      _ = try file.entries(of: node, keys: ["id", "name", "ios", "macos", "source"])
      points.append(
        Point(
          identifier: try Self.identifier(node, file, among: points.map(\.identifier)),
          name: try file.text(node["name"], in: node), iOS: try file.version(node["ios"]),
          macOS: try file.version(node["macos"]), source: try file.text(node["source"], in: node)))
    }
    for node in try file.list(file.root["activities"]) {
      _ = try file.entries(of: node, keys: ["id", "name", "source"])
      activities.append(
        Activity(
          identifier: try Self.identifier(node, file, among: activities.map(\.identifier)),
          name: try file.text(node["name"], in: node),
          source: try file.text(node["source"], in: node)))
    }
    (self.points, self.activities) = (points, activities)
  }

  private static func identifier(
    _ node: YAMLNode, _ file: DataFile, among others: [ByteString]
  ) throws(OperationError) -> ByteString {
    let text = ByteString(try file.text(node["id"], in: node))
    if others.contains(text) { throw file.fault(at: node, "'\(text)' is there twice") }
    return text
  }

  /// Returns a point, or nil if it is unknown. Identifiers are case-sensitive.
  package func point(_ identifier: ByteString) -> Point? {
    points.first { $0.identifier == identifier }
  }

  /// Returns an activity, or nil if it is unknown.
  package func activity(_ identifier: ByteString) -> Activity? {
    activities.first { $0.identifier == identifier }
  }

  /// The point of Share extensions.
  package static let share: ByteString = "com.apple.share-services"
  /// The points of Action extensions, with and without a user interface.
  package static let actions: [ByteString] = ["com.apple.ui-services", "com.apple.services"]
}
