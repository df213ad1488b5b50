SELECT name,
    observation_noise_positive, observation_noise_negative, daily_share, contested_share, daily_weight_verdicts,
    trusted
 FROM judge WHERE collection_id = %(collection)s AND name = ANY(%(names)s)
