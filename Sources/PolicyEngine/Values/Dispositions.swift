/// What becomes of data when the app is updated.
public enum UpdateDisposition: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// The platform promises to carry it over.
  case preserve
  /// It may be carried over; nobody may rely on it.
  case mayVanish = "may-vanish"
  /// The new version brings its own.
  case replace
  /// It goes.
  case discard
}

/// What a restore does with data.
public enum RestoreDisposition: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// It comes back as it was stored.
  case restore
  /// The directory comes back empty.
  case recreateEmpty = "recreate-empty"
  /// It does not come back.
  case skip
  /// What the target has there goes when a whole container is restored.
  case remove
  /// The layout writes it anew, as container metadata with its UUID.
  case regenerate
}
