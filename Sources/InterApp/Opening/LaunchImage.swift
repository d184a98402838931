package import SystemIO

/// The picture that the system shows until an app that was opened for a URL draws its own content
/// (App Programming Guide for iOS, "Displaying a Custom Launch Image When a URL is Opened" and
/// "Providing Launch Images").
package enum LaunchImage: Sendable, Hashable {
  /// An image for the URL's scheme, a file in the bundle.
  case forScheme(ByteString)
  /// The image of each launch, a file in the bundle.
  case general(ByteString)
  /// The launch storyboard, from iOS 8, which is the same for each scheme.
  case storyboard(ByteString)
  /// The snapshot that the system took when the app left the foreground.
  case snapshot
  /// The app is visible already.
  case visible
  /// The bundle has none of the images, so the screen is black.
  case missing

  /// The kind of device, which selects images by their names.
  package enum Idiom: String, Sendable, Hashable, CaseIterable {
    case phone = "iphone"
    case pad = "ipad"
  }

  /// Selects the picture.
  ///
  /// - Parameters:
  ///   - names: The names of the files in the bundle.
  ///   - scheme: The URL's scheme in lower case.
  package init(
    for scheme: ByteString, from state: AppState, on version: SystemVersion?, _ idiom: Idiom,
    keys: LaunchKeys, names: Set<ByteString>
  ) {
    switch state {
    case .foreground: self = .visible
    case .background: self = .snapshot
    case .notRunning:
      if let storyboard = keys.storyboard, version.map({ SystemVersion(8) <= $0 }) ?? true {
        self = .storyboard(storyboard)
        return
      }
      let own = Self.names(base: keys.imageBaseName, scheme: scheme, idiom)
      let general = Self.names(base: keys.imageBaseName, scheme: nil, idiom)
      if let name = own.first(where: names.contains) {
        self = .forScheme(name)
      } else if let name = general.first(where: names.contains) {
        self = .general(name)
      } else {
        self = .missing
      }
    }
  }

  /// Returns the names that the system looks for, in order:
  /// `<base>-<scheme><usage><scale><device>.png`, the most specific modifiers first.
  package static func names(base: ByteString, scheme: ByteString?, _ idiom: Idiom) -> [ByteString] {
    let stem = scheme.map { base.concatenating("-").concatenating($0) } ?? base
    let usages: [ByteString] =
      switch idiom {
      case .phone: ["-568h", ""]
      case .pad: ["-Portrait", "-Landscape", ""]
      }
    let scales: [ByteString] = idiom == .phone ? ["@3x", "@2x", ""] : ["@2x", ""]
    return usages.flatMap { usage in
      scales.flatMap { scale in
        [ByteString("~\(idiom.rawValue)"), ""].map { device in
          stem.concatenating(usage).concatenating(scale).concatenating(device)
            .concatenating(".png")
        }
      }
    }
  }
}
