/// The kinds of objects that are encrypted in an encrypted repository. Each object is named by the
/// hash of its stored bytes.
enum ObjectKind: Hashable, Sendable {
  case pack
  case index
  case snapshot

  /// The suffix of the name, without that of encrypted objects.
  var suffix: String {
    switch self {
    case .pack: ".tar.zst"
    case .index: ".index"
    case .snapshot: ".json"
    }
  }
}
