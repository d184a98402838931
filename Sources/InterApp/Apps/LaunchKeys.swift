internal import Codecs
package import SystemIO

/// The keys of an Info.plist that decide how an app is launched for a URL and which launch image it
/// shows.
package struct LaunchKeys: Sendable, Hashable {
  /// The base name of launch images (UILaunchImageFile; default: `Default`).
  package let imageBaseName: ByteString
  /// The launch storyboard (UILaunchStoryboardName), or nil.
  package let storyboard: ByteString?
  /// Whether the app has scenes (UIApplicationSceneManifest with configurations).
  package let hasScenes: Bool
  /// Whether the app ends when it leaves the foreground (UIApplicationExitsOnSuspend).
  package let exitsOnSuspend: Bool

  init(_ list: PropertyList, _ reader: inout DeclarationReader) {
    imageBaseName = Self.baseName(list, &reader) ?? "Default"
    storyboard = reader.text("UILaunchStoryboardName", of: list, at: "Info.plist")
    exitsOnSuspend = list["UIApplicationExitsOnSuspend"] == .bool(true)
    let scenes = list["UIApplicationSceneManifest"]?["UISceneConfigurations"]
    hasScenes = scenes?.dictionaryValue?.isEmpty == false
  }

  /// Returns the base name without the extension `.png`, which the key may have. A path is refused
  /// because the images are in the bundle's own directory.
  private static func baseName(
    _ list: PropertyList, _ reader: inout DeclarationReader
  ) -> ByteString? {
    guard let text = reader.text("UILaunchImageFile", of: list, at: "Info.plist") else {
      return nil
    }
    let name = text.hasSuffix(".png") ? ByteString(text.bytes.dropLast(4)) : text
    guard let fault = name.nameFault else { return name }
    reader.warn("UILaunchImageFile", "'\(text)' is not a file name: \(fault)")
    return nil
  }
}
